"""Playhead inside voice-agent frameworks. Each module needs its extra: ``playhead[pipecat]``,
``playhead[livekit]``."""
