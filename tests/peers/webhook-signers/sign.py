"""Signs a body with the SDKs of platforms, as the platforms themselves do, and prints what they would send."""

import datetime
import hashlib
import json
import sys
import urllib.parse

import stripe
import standardwebhooks
import svix.webhooks
from slack_sdk.signature import SignatureVerifier
from twilio.request_validator import RequestValidator

SECRET = "s3cret-s3cret-s3cret"
BASE64 = "whsec_czNjcmV0LXMzY3JldC1zM2NyZXQ="
URL = "https://hooks.example.com/v1/webhooks/events/demo"

body, seconds = sys.argv[1], sys.argv[2]
now = datetime.datetime.fromtimestamp(int(seconds), tz=datetime.timezone.utc)
sent = []


def send(scheme, secret, headers, body=body, query=None, kind="application/json"):
    headers = {"content-type": kind, **headers}
    sent.append({"scheme": scheme, "secret": secret, "headers": headers, "body": body, "query": query})


stripe_signature = stripe.WebhookSignature._compute_signature(f"{seconds}.{body}", SECRET)
old = stripe.WebhookSignature._compute_signature(f"{seconds}.{body}", "an-older-secret")
send("stripe", SECRET, {"stripe-signature": f"t={seconds},v1={stripe_signature}"})
send("stripe", SECRET, {"stripe-signature": f"t={seconds},v1={old},v1={stripe_signature},v0=00"})
# What we accept, the SDK accepts.
stripe.Webhook.construct_event(body, sent[-1]["headers"]["stripe-signature"], SECRET, tolerance=10**9)

for name, sdk, prefix in [("svix", svix.webhooks.Webhook, "svix"), ("standard", standardwebhooks.Webhook, "webhook")]:
    signature = sdk(BASE64).sign("msg_1", now, body)
    headers = {f"{prefix}-id": "msg_1", f"{prefix}-timestamp": seconds, f"{prefix}-signature": signature}
    send(name, BASE64, headers)

slack = SignatureVerifier(SECRET).generate_signature(timestamp=seconds, body=body)
send("slack", SECRET, {"x-slack-signature": slack, "x-slack-request-timestamp": seconds})

twilio = RequestValidator(SECRET)
form = {"To": "+1555", "Body": "a b&c=ü", "From": "+1666", "Empty": ""}
send(
    "twilio",
    SECRET,
    {"x-twilio-signature": twilio.compute_signature(URL, form)},
    body=urllib.parse.urlencode(form),
    kind="application/x-www-form-urlencoded",
)
query = "foo=bar&bodySHA256=" + hashlib.sha256(body.encode()).hexdigest()
send("twilio", SECRET, {"x-twilio-signature": twilio.compute_signature(f"{URL}?{query}", {})}, query=query)
assert twilio.validate(f"{URL}?{query}", body, sent[-1]["headers"]["x-twilio-signature"])

print(json.dumps({"url": URL, "sent": sent}))
