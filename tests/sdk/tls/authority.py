"""Authorities and what they certify, by the program `openssl`, in files of one folder."""

import subprocess
from dataclasses import dataclass
from pathlib import Path

KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30"]


@dataclass
class Certified:
    """A certificate and its key."""

    certificate: Path
    key: Path


@dataclass
class Authority:
    """Its own certificate, which clients or servers trust, and its key."""

    folder: Path
    name: str

    @staticmethod
    def new(folder: Path, name: str) -> "Authority":
        made = Authority(folder, name)
        openssl(
            *("req", "-x509", *KEY, "-subj", f"/CN={name}", "-addext", "keyUsage=critical,keyCertSign"),
            *("-keyout", made.key, "-out", made.certificate),
        )
        return made

    @property
    def certificate(self) -> Path:
        return self.folder / f"{self.name}.pem"

    @property
    def key(self) -> Path:
        return self.folder / f"{self.name}.key"

    def certify(self, name: str, use: str, names: str = "") -> Certified:
        """`use`: serverAuth or clientAuth; `names`: the alternative names, as openssl writes them."""
        certificate, key, asked = (self.folder / f"{name}.{end}" for end in ("pem", "key", "csr"))
        extensions = self.folder / f"{name}.ext"
        lines = [f"extendedKeyUsage={use}", *([f"subjectAltName={names}"] if names else [])]
        extensions.write_text("\n".join(lines))
        openssl("req", *KEY, "-subj", f"/CN={name}", "-keyout", key, "-out", asked)
        openssl(
            *("x509", "-req", "-in", asked, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial"),
            *("-days", "30", "-extfile", extensions, "-out", certificate),
        )
        return Certified(certificate, key)


def openssl(*words: str | Path) -> None:
    ended = subprocess.run(["openssl", *words], capture_output=True, text=True)
    if ended.returncode:
        raise SystemExit(f"openssl {words[0]}: {ended.stderr}")
