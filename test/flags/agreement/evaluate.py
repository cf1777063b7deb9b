"""Evaluates the flags of users by posthog-python alone.

Arguments: host, project key, personal key, the file of users, the file of answers. Writes one JSON object for each user: the
values of the flags that could be decided without the server.
"""

import json
import logging
import sys

from posthog import Posthog

host, project_key, personal_key, path, answers = sys.argv[1:]
logging.getLogger("posthog").setLevel(logging.CRITICAL)
client = Posthog(
    project_key,
    host=host,
    personal_api_key=personal_key,
    poll_interval=3600,
    sync_mode=True,
)
client.load_feature_flags()
takes_device = int(__import__("posthog.version").version.VERSION.split(".")[0]) >= 7
out = open(answers, "w", encoding="utf-8")
for line in open(path, encoding="utf-8"):
    user = json.loads(line)
    more = {"device_id": user["deviceId"] or None} if takes_device else {}
    values = client.get_all_flags(
        user["distinctId"],
        groups=user["groups"],
        person_properties=user["personProperties"],
        group_properties=user["groupProperties"],
        only_evaluate_locally=True,
        **more,
    )
    out.write(json.dumps(values) + "\n")
out.close()
client.shutdown()
