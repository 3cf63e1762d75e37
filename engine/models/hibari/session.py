"""ONNX Runtime sessions, all with the same options."""

from pathlib import Path
from typing import Any

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
