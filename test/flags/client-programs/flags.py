"""What a server does with the flags of posthog-python. Arguments: host, project key, personal key."""

import json
import logging
import sys

from posthog import Posthog

host, project_key, personal_key = sys.argv[1:]
logging.getLogger("posthog").setLevel(logging.CRITICAL)
PERSON = {"email": "ann@acme.com", "plan": "pro"}


def values(client, **more):
    return {
        "variant": client.get_feature_flag("new-checkout", "user-2", person_properties=PERSON, **more),
        "payload": client.get_feature_flag_payload("new-checkout", "user-2", person_properties=PERSON, **more),
        "cohort": client.get_feature_flag("acme", "user-2", person_properties=PERSON, **more),
        "child": client.get_feature_flag("child", "user-2", person_properties=PERSON, **more),
        "unknown": client.get_feature_flag("unknown", "user-2", person_properties=PERSON, **more) or None,
        "all": len(client.get_all_flags("user-2", person_properties=PERSON, **more)),
    }


remote = Posthog(project_key, host=host)
local = Posthog(project_key, host=host, personal_api_key=personal_key, poll_interval=3600)
local.load_feature_flags()
print("RESULT", json.dumps({"remote": values(remote), "local": values(local, only_evaluate_locally=True)}))
remote.shutdown()
local.shutdown()
