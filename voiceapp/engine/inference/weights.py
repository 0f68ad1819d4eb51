"""Model files inside installed packages: found without importing the package, and verified."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from voiceapp.errors import VoiceAppError


class ModelError(VoiceAppError):
    """A model is missing, altered or does not run."""

    default_code = "model_unavailable"


@dataclass(frozen=True)
class WeightFile:
    """One file of a package and the SHA-256 that this code was made for."""

    package: str
    path: str
    sha256: str

    def read(self) -> bytes:
        """Return the file's content; raise ``ModelError`` where it is missing or not the expected one."""
        spec = importlib.util.find_spec(self.package)
        folders = list(spec.submodule_search_locations or []) if spec else []
        if not folders:
            raise ModelError(f"The package {self.package} is not installed.")
        try:
            content = (Path(folders[0]) / self.path).read_bytes()
        except OSError as error:
            raise ModelError(f"{self.package}/{self.path} cannot be read: {error.strerror}.") from error
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise ModelError(f"{self.package}/{self.path} is not the file that this version was made for.")
        return content


def open_model(content: bytes, *, threads: int = 1) -> Any:
    """Return an onnxruntime session on the CPU that does not spin while it waits."""
    # Without type information the package is Any; importing it so keeps that in one place.
    ort: Any = importlib.import_module("onnxruntime")
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(content, options, providers=["CPUExecutionProvider"])
