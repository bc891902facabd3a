"""Checks a signed webhook with somebody else's library: `webhook.py SECRET`, headers and body as JSON on standard input."""

import json
import sys

from standardwebhooks import Webhook

given = json.load(sys.stdin)
Webhook(sys.argv[1]).verify(given["body"], given["headers"])
print("good")
