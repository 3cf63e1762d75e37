"""Every limit of a session, with its reason. Times in seconds, sizes in bytes or code points."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """Defaults suit a public endpoint; an operator changes them as one value."""

    message_bytes: int = 65_536  # largest honest message is a 2,000 code point text: 8 KB
    message_depth: int = 16  # the protocol nests two deep; stops parser recursion
    message_items: int = 256  # per map or list: bounds the objects 64 KiB can turn into
    text_message: int = 2_000  # an LLM's whole paragraph fits; bigger texts come in pieces
    text_waiting: int = 8_000  # about nine minutes of speech not yet spoken, per session
    text_utterance: int = 20_000  # what one utterance keeps in memory to tell heard text
    instruct: int = 1_000  # a few sentences; they take room that speech needs
    id_length: int = 128  # the client's own name for an utterance
    queued_utterances: int = 16  # waiting behind the one that plays
    hello_within: float = 5.0  # a silent socket costs a slot
    grace: float = 30.0  # a phone changing networks is back within seconds
    tombstone: float = 600.0  # how long an ended session still tells what was heard
    outbox_bytes: int = 2_097_152  # unacknowledged messages kept for resume, per session
    outbox_seconds: float = 120.0  # unacknowledged audio kept for resume, per session
    text_rate: float = 400.0  # texts/s: twice the fastest token streams seen one by one
    text_burst: float = 1_000.0  # a client that catches up after its own stall
    control_rate: float = 50.0  # other messages/s: five times the densest honest reporting
    control_burst: float = 100.0  # a resumed client repeats itself
    open_rate: float = 5.0  # utterances/s: a start and cancel loop would burn prefill
    open_burst: float = 20.0  # fills the queue once
    frame_rate: float = 1_000.0  # messages of every kind/s: above this it is a flood
    frame_burst: float = 2_000.0
    error_rate: float = 10.0  # error events/s: an abuser gets no amplifier
    error_burst: float = 20.0
    strike_interval: float = 1.0  # refusals within this time are one strike
    strikes: int = 3  # strikes in a row before close 1008: closed in two seconds
    strike_memory: float = 5.0  # good behaviour for this long forgives
    speech_rate: float = 10.0  # code points/s of slow speech, for voices without word times
    quantum: float = 0.010  # rounding of a client's counters: above a render quantum
    report_fresh: float = 0.5  # two report intervals; older positions are "estimated"
    done_grace: float = 0.5  # after the estimated end, for start-up and network delay
    one_way_most: float = 0.25  # larger measured delays are not believed: a liar's lever

    def public(self) -> dict[str, int | float]:
        """What ``ready.limits`` tells a client: sizes, and durations in milliseconds."""
        return {
            "message_bytes": self.message_bytes,
            "text_message": self.text_message,
            "text_waiting": self.text_waiting,
            "text_utterance": self.text_utterance,
            "instruct": self.instruct,
            "queued_utterances": self.queued_utterances,
            "text_rate": self.text_rate,
            "control_rate": self.control_rate,
            "outbox_bytes": self.outbox_bytes,
            "outbox_audio": self.outbox_seconds * 1_000,
        }
