"""A program that uses posthog-python as its readers would: python.py <host> <project key>"""

import sys
from datetime import datetime, timezone

import posthog
from posthog import Posthog
from posthog.version import VERSION

host, key = sys.argv[1:]
old = int(VERSION.split(".")[0]) < 6
timestamp = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=timezone.utc)


def failed(error, _batch):
    print(error, file=sys.stderr)
    sys.exit(1)


def capture(client, who, event, **more):
    if old:
        client.capture(who, event, **more)
    else:
        client.capture(event, distinct_id=who, **more)


client = Posthog(key, host=host, gzip=not old, on_error=failed)
capture(
    client,
    "ann",
    "signed up",
    properties={"plan": "pro", "$set": {"name": "Ann"}, "$set_once": {"first_plan": "pro"}},
    timestamp=timestamp,
)
if old:
    client.identify("ann", {"email": "ann@example.com"})
client.set(distinct_id="ann", properties={"email": "ann@example.com"})
client.set_once(distinct_id="ann", properties={"first": 1})
client.alias(previous_id="anonymous-1", distinct_id="ann")
client.group_identify("company", "acme", {"seats": 5})
capture(client, "ann", "report opened", groups={"company": "acme"}, timestamp=timestamp)
capture(client, "visitor", "looked", properties={"$process_person_profile": False}, timestamp=timestamp)
client.shutdown()

importer = Posthog(key, host=host, historical_migration=True, on_error=failed)
capture(importer, "ann", "imported", timestamp=datetime(2020, 1, 2, 3, 4, 5, tzinfo=timezone.utc))
importer.shutdown()
