"""A mail server for a test: `mail.py FOLDER MODE`, with MODE plain, starttls or tls.

Prints its port, then keeps each message as FOLDER/mail-N.json until its standard input ends. With starttls and tls it
makes a certificate for localhost (FOLDER/ca.pem) and takes nothing without the login `drift` / `swordfish`."""

import datetime
import email
import email.policy
import itertools
import json
import pathlib
import socket
import ssl
import sys

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

folder, mode = pathlib.Path(sys.argv[1]), sys.argv[2]


def certificate():
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    (folder / "ca.pem").write_bytes(made.public_bytes(pem))
    form = serialization.PrivateFormat.PKCS8
    (folder / "key.pem").write_bytes(key.private_bytes(pem, form, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "ca.pem", folder / "key.pem")
    return context


class Keeper:
    numbers = itertools.count(1)

    async def handle_DATA(self, server, session, envelope):
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        kept = {
            "headers": {name.lower(): str(value) for name, value in message.items()},
            "body": message.get_content(),
            "to": envelope.rcpt_tos,
            "tls": session.ssl is not None or mode == "tls",
            "login": session.auth_data.decode() if session.auth_data else None,
        }
        path = folder / f"mail-{next(self.numbers)}.json"
        path.with_suffix(".part").write_text(json.dumps(kept))
        path.with_suffix(".part").rename(path)
        return "250 kept"


def check(server, session, envelope, mechanism, data):
    good = data.login == b"drift" and data.password == b"swordfish"
    # What is not handled here is answered by the server: 535.
    return AuthResult(success=good, handled=False, auth_data=data.login if good else None)


with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
settings = {"hostname": "127.0.0.1", "port": port}
if mode == "starttls":
    settings |= {"tls_context": certificate(), "require_starttls": True, "auth_required": True, "authenticator": check}
if mode == "tls":
    settings |= {"ssl_context": certificate(), "auth_required": True, "auth_require_tls": False, "authenticator": check}
controller = Controller(Keeper(), **settings)
controller.start()
print(port, flush=True)
sys.stdin.read()
controller.stop()
