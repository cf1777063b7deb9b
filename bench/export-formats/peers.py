"""Runs one export by a peer: python3 peers.py <peer> <url> <query> <target>. PYTHONPATH must contain its packages.

The clock starts after the imports. The measurements are printed as JSON.
"""

import json
import os
import resource
import sys
import time

peer, url, query, target = sys.argv[1:5]


def duckdb_scanner():
    import duckdb
    import duckdb_extension_postgres_scanner as package

    folder = os.path.join(os.path.dirname(package.__file__), "extensions")
    files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".duckdb_extension")]
    connection = duckdb.connect()
    connection.execute(f"load '{files[0]}'")

    def export():
        connection.execute("set enable_progress_bar = false")
        connection.execute("set preserve_insertion_order = false")
        connection.execute(f"attach '{url}' as source (type postgres, read_only)")
        connection.execute("use source")
        connection.execute(f"copy ({query}) to '{target}' (format parquet, compression zstd)")

    return export


def written(reader, parquet):
    with parquet.ParquetWriter(target, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)


def connectorx_stream():
    import connectorx
    import pyarrow.parquet as parquet

    return lambda: written(connectorx.read_sql(url, query, return_type="arrow_stream", batch_size=65536), parquet)


def adbc():
    import adbc_driver_postgresql.dbapi as driver
    import pyarrow.parquet as parquet

    def export():
        with driver.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            written(cursor.fetch_record_batch(), parquet)

    return export


export = {"duckdb": duckdb_scanner, "connectorx": connectorx_stream, "adbc": adbc}[peer]()
begun, cpu = time.perf_counter(), time.process_time()
export()
seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps({"seconds": seconds, "cpu": cpu, "peak": peak}))
