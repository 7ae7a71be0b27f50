"""Web servers for downloads: one whose behaviour a test can spoil, with or without TLS."""

from __future__ import annotations

import datetime
import hashlib
import ipaddress
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Site:
    """Serves `files` by path, with tags and ranges. `spoil` may do something else with a request: True if it did."""

    files: dict[str, bytes] = field(default_factory=dict, repr=False)
    headers: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    spoil: Callable[[Answer], bool] | None = None
    address: str = ""


class Answer(BaseHTTPRequestHandler):
    site: Site
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.site.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
        if self.site.spoil and self.site.spoil(self):
            return
        content = self.site.files.get(self.path.partition("?")[0])
        if content is None:
            self.send_error(404)
        else:
            self.give(content)

    do_HEAD = do_GET

    def give(self, content: bytes, *, cut_after: int | None = None) -> None:
        """Answer with the content, or the part of it that was asked for; break the connection after some bytes."""
        tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        start, end, size = 0, len(content), len(content)
        if asked and self.headers.get("If-Range") in (None, tag):
            start, end = int(asked[1]), min(int(asked[2]) + 1, size) if asked[2] else size
        self.send_response(206 if (start, end) != (0, size) else 200)
        if (start, end) != (0, size):
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", tag)
        for name, value in {"Content-Type": "application/octet-stream", **self.site.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        self.wfile.write(content[start : end if cut_after is None else min(start + cut_after, end)])
        self.wfile.flush()
        if cut_after is not None:
            self.close_connection = True

    def give_of_commit(self, content: bytes, commit: str) -> None:
        """Answer as Hugging Face does, with the commit that a file is of."""
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", commit)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None = None) -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"{'https' if context else 'http'}://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def site(context: ssl.SSLContext | None = None) -> Iterator[Site]:
    made = Site()
    with serving(type("Bound", (Answer,), {"site": made}), context) as address:
        made.address = address
        yield made


def refusing(code: int) -> Callable[[Answer], bool]:
    def refuse(answer: Answer) -> bool:
        answer.send_error(code)
        return True

    return refuse


def private_ca(folder: Path) -> ssl.SSLContext:
    """A server's TLS context; its CA is in `cabundle.crt` of the folder, where pods have it mounted."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    now = datetime.datetime.now(datetime.UTC)

    def certify(
        subject: str,
        issuer: str,
        key: ec.EllipticCurvePrivateKey,
        signer: ec.EllipticCurvePrivateKey,
        extension: x509.ExtensionType,
    ) -> x509.Certificate:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(extension, critical=False)
            .sign(signer, hashes.SHA256())
        )

    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca = certify("private CA", "private CA", ca_key, ca_key, x509.BasicConstraints(ca=True, path_length=None))
    name = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    certificate = certify("127.0.0.1", "private CA", key, ca_key, name)
    pem = serialization.Encoding.PEM
    (folder / "cabundle.crt").write_bytes(ca.public_bytes(pem))
    (folder / "tls.crt").write_bytes(certificate.public_bytes(pem))
    plain = serialization.NoEncryption()
    (folder / "tls.key").write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    return context
