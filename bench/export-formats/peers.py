"""One export by a peer: python3 peers.py <peer> <url> <query> <target>. PYTHONPATH has its packages."""

import sys

peer, url, query, target = sys.argv[1:5]

if peer.startswith("duckdb"):
    import os
    import duckdb
    import duckdb_extension_postgres_scanner as package

    folder = os.path.join(os.path.dirname(package.__file__), "extensions")
    files = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names if name.endswith(".duckdb_extension")]
    connection = duckdb.connect()
    connection.execute(f"load '{files[0]}'")
    connection.execute("set preserve_insertion_order = false")
    connection.execute(f"attach '{url}' as source (type postgres, read_only)")
    connection.execute("use source")
    connection.execute(f"copy ({query}) to '{target}' (format parquet, compression zstd)")
elif peer == "connectorx":
    import connectorx
    import pyarrow.parquet

    reader = connectorx.read_sql(url, query, return_type="arrow_stream", batch_size=65536)
    with pyarrow.parquet.ParquetWriter(target, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
elif peer == "adbc":
    import adbc_driver_postgresql.dbapi
    import pyarrow.parquet

    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        reader = cursor.fetch_record_batch()
        with pyarrow.parquet.ParquetWriter(target, reader.schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(batch)
