# The gateway with its bundled CPU voice. Build: docker build -t playhead .
# With the accelerator's model: docker build --build-arg 'EXTRAS=[qwen]' -t playhead:gpu .

FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/playhead
ENV PATH=/opt/playhead/bin:$PATH PLAYHEAD_CACHE=/opt/voice
COPY pyproject.toml README.md LICENSE NOTICE ./
COPY codecs codecs
COPY engine engine
COPY gateway gateway
COPY loadgen loadgen
COPY web web
ARG EXTRAS=""
# What is installed is this source; pyproject.toml says which versions of others it takes.
# hadolint ignore=DL3013
RUN pip install --no-cache-dir --disable-pip-version-check ".${EXTRAS}"
# The voice is prepared here so that a container starts at once, on a read-only file system. A layer
# of its own: with the packages in one it would be made anew with every attempt.
# hadolint ignore=DL3059
RUN python -m playhead.engine.models.hibari.split

FROM python:3.11-slim
# Any libopus of the base image's release will do; a pinned one vanishes with the next update.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends libopus0 \
    && rm -rf /var/lib/apt/lists/* \
    && groupadd --gid 10001 playhead \
    && useradd --uid 10001 --gid 10001 --no-create-home playhead
COPY --from=build /opt/playhead /opt/playhead
COPY --from=build /opt/voice /opt/voice
ENV PATH=/opt/playhead/bin:$PATH PLAYHEAD_CACHE=/opt/voice PYTHONUNBUFFERED=1
USER 10001:10001
# 8081: the HTTP API; or what a balancer asks for the slack, when PLAYHEAD_AGENT_PORT says so, and
# then the API is on 8082.
EXPOSE 8080 8081 8082
# The first SIGTERM drains: what is being spoken is finished, nothing new is taken.
STOPSIGNAL SIGTERM
# A server that loads is not healthy yet, and an accelerator's model takes minutes.
HEALTHCHECK --interval=10s --timeout=3s --start-period=600s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=2)"]
ENTRYPOINT ["playhead"]
# Reachable from outside the container only as far as its published ports allow.
CMD ["serve", "--host", "0.0.0.0", "--port", "8080", "--open"]
