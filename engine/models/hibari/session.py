"""ONNX Runtime sessions, all with the same options."""

import os
from pathlib import Path
from typing import Any

# Releases from 1.32 on tell their maker about each process and session unless this is set before
# they are imported (Privacy.md in the package). Who wants that may set it to 0.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

import onnxruntime as ort


def open_session(path: Path) -> Any:
    """Single-threaded: streams run beside each other, one operator never uses several cores.

    Idle threads must not spin either, they would take the cores from other streams. ``run`` of
    the session may be called from several threads at once.
    """
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
