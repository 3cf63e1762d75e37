"""Hypothesis strategies for every message of the protocol, in both directions."""

from hypothesis import strategies as st
from playhead.engine.types import Lane, ListenerState
from playhead.gateway import messages as m

SAFE = 2**53 - 1
counts = st.integers(0, SAFE)
stamps = st.floats(-1e12, 1e12)
durations = st.floats(0, 1e9)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
maybe_count = st.none() | counts
maybe_stamp = st.none() | stamps

resumes = st.builds(m.ResumeFrom, texts, texts, counts)
speeds = st.floats(0.5, 2.0)

client_messages = st.one_of(
    st.builds(
        m.Hello,
        voice=st.none() | texts,
        speed=speeds,
        codec=texts,
        sample_rate=counts,
        start_threshold=st.floats(0, 2_000),
        playback_rate=speeds,
        reports=st.booleans(),
        binary_audio=st.booleans(),
        language=st.none() | texts,
        instruct=st.none() | texts,
        resume=st.none() | resumes,
    ),
    st.builds(
        m.Start,
        voice=st.none() | texts,
        speed=st.none() | speeds,
        id=st.none() | texts,
        language=st.none() | texts,
        instruct=st.none() | texts,
    ),
    st.builds(m.Text, texts),
    st.builds(m.Flush),
    st.builds(m.End),
    st.builds(
        m.PlaybackReport,
        epoch=counts,
        received=counts,
        consumed=counts,
        heard=counts,
        buffered=counts,
        state=st.sampled_from(ListenerState),
        time=stamps,
        discarded=counts,
        underruns=counts,
        starved=durations,
        seq=maybe_count,
        echo=maybe_stamp,
        hold=st.none() | durations,
    ),
    st.builds(m.Cancel, epoch=maybe_count, heard=maybe_count),
    st.builds(m.Pause),
    st.builds(m.ResumePlayback),
    st.builds(m.Ack, counts),
    st.builds(m.Ping, stamps),
    st.builds(m.CloseSession),
)

spoken_words = st.builds(
    m.SpokenWord, text=texts, position=counts, char_start=counts, char_end=counts
)
audios = st.builds(
    m.Audio,
    seq=counts,
    epoch=counts,
    index=counts,
    position=counts,
    samples=counts,
    words=st.lists(spoken_words, max_size=3).map(tuple),
    lane=st.sampled_from(Lane),
    slack=maybe_stamp,
    depth=stamps,
    sent=stamps,
    final=st.booleans(),
    data=st.binary(max_size=50),
    packets=st.none() | st.lists(counts, max_size=3).map(tuple),
)
faults = {
    "code": texts,
    "message": texts,
    "expected": texts,
    "retry_after": maybe_stamp,
}

server_messages = st.one_of(
    st.builds(
        m.Ready,
        session=texts,
        token=texts,
        resumed=st.booleans(),
        codec=texts,
        sample_rate=counts,
        pre_skip=counts,
        packet_samples=counts,
        voice=texts,
        voices=st.lists(texts, max_size=3).map(tuple),
        language=texts,
        languages=st.lists(texts, max_size=3).map(tuple),
        instruct=st.booleans(),
        report_interval=st.integers(250, 1_000),
        formats=st.just(({"codec": "pcm_s16le", "sample_rates": [8000, 24000]},)),
        limits=st.dictionaries(texts, counts | durations, max_size=3),
        grace=stamps,
        epoch=counts,
        time=stamps,
        model=texts,
        server=texts,
        received=counts,
    ),
    st.builds(m.Started, seq=counts, epoch=counts, id=st.none() | texts),
    audios,
    st.builds(
        m.Done,
        seq=counts,
        epoch=counts,
        samples=counts,
        heard=counts,
        estimated=st.booleans(),
        reason=texts,
    ),
    st.builds(
        m.Cancelled,
        seq=counts,
        epoch=counts,
        heard=counts,
        heard_text=texts,
        unheard_text=texts,
        estimated=st.booleans(),
    ),
    st.builds(
        m.Failed,
        seq=counts,
        epoch=counts,
        heard=counts,
        heard_text=texts,
        unheard_text=texts,
        **faults,
    ),
    st.builds(
        m.Warn,
        seq=counts,
        epoch=maybe_count,
        code=texts,
        message=texts,
        text=st.none() | texts,
    ),
    st.builds(m.Draining, seq=counts, deadline=stamps),
    st.builds(m.Pong, time=stamps, received=stamps, sent=stamps),
    st.builds(
        m.ErrorEvent,
        field=st.none() | texts,
        epoch=maybe_count,
        heard=maybe_count,
        heard_text=st.none() | texts,
        unheard_text=st.none() | texts,
        **faults,
    ),
)
