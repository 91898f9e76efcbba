"""The certificates of a run, which exist in memory only: who does not hold them cannot connect to its processes."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from distributed import Security

NAME = "sweeplib run"
VALID = timedelta(days=3650)
"""How long before and after its making a certificate is valid: a clock may be set back, also while a run goes on."""


def own_certificates() -> "Security":
    """Return a new key and certificate as settings of Dask, for scheduler, workers and client.

    Dask's own `Security.temporary` is valid from this moment on only: a clock that is set back would refuse it.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from distributed import Security

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, NAME)])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - VALID)
        .not_valid_after(now + VALID)
        .sign(key, hashes.SHA256())
    )
    encodings = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private = key.private_bytes(*encodings).decode()
    public = certificate.public_bytes(serialization.Encoding.PEM).decode()
    roles = {
        f"tls_{role}_{kind}": text
        for role in ("scheduler", "worker", "client")
        for kind, text in (("key", private), ("cert", public))
    }
    return Security(require_encryption=True, tls_ca_file=public, **roles)
