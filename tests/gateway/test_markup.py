"""SSML and XML are text like any other: nothing is expanded, fetched, waited for, or opened."""

import pytest
import uvloop
from audit import begin, watched
from fake_engine import CHUNK
from harness import Client, gateway
from playhead.gateway.messages import Audio, Cancel

LOLS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10 if n else "lol"}">' for n in range(10))
MARKUP = {
    "billion laughs": f"<?xml version='1.0'?><!DOCTYPE lolz [{LOLS}]><speak>&l9;</speak>",
    "quadratic blowup": f'<!DOCTYPE x [<!ENTITY a "{"a" * 500}">]><speak>{"&a;" * 300}</speak>',
    "external entity": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><speak>&e;</speak>',
    "entity over HTTP": '<!DOCTYPE x [<!ENTITY e SYSTEM "http://127.0.0.1:9/x">]><speak>&e;</speak>',
    "parameter entity": '<!DOCTYPE x [<!ENTITY % p SYSTEM "http://127.0.0.1:9/p.dtd"> %p;]><x/>',
    "external DTD": '<!DOCTYPE speak SYSTEM "http://127.0.0.1:9/speak.dtd"><speak>hi</speak>',
    "public DTD": '<!DOCTYPE speak PUBLIC "-//W3C//DTD SYNTHESIS 1.0//EN" "http://127.0.0.1:9/">',
    "inclusion": '<speak xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="/x"/>',
    "style sheet": '<?xml-stylesheet href="http://127.0.0.1:9/x.xsl" type="text/xsl"?><speak/>',
    "schema": '<speak xsi:schemaLocation="a http://127.0.0.1:9/a.xsd">hi</speak>',
    "audio of a file": '<speak><audio src="file:///etc/passwd">none</audio></speak>',
    "audio of an address": '<speak><audio src="http://169.254.169.254/latest/">none</audio></speak>',
    "lexicon": '<speak><lexicon uri="http://127.0.0.1:9/lexicon.pls"/>hi</speak>',
    "a long break": "<speak>one <break time='1e9s'/> two</speak>",
    "breaks": "<break time='10s'/>" * 100,
    "slow for ever": "<prosody rate='0.0001%'>one two</prosody>",
    "deep nesting": "<speak>" + "<p>" * 600 + "deep",
    "attributes": "<speak " + " ".join(f'a{n}="{n}"' for n in range(150)) + ">many</speak>",
    "unclosed": "<speak><![CDATA[ ]]><!-- <voice name='../../x'>",
    "numeric entities": "&#0;&#x10FFFF;&#xD800;&#99999999999;",
}


def test_there_are_twenty() -> None:
    assert len(set(MARKUP.values())) == len(MARKUP) == 20
    assert max(map(len, MARKUP.values())) <= 2_000, "longer ones are refused for their length"


async def speak(client: Client, epoch: int, text: str) -> list[str]:
    """The words that were spoken, a chunk each; nobody waits for them to be played."""
    await client.say(text)
    heard = [await client.until(Audio)]
    while not heard[-1].final:
        heard.append(await client.until(Audio))
    await client.send(Cancel())
    assert (await client.ending()).epoch == epoch
    words = [word.text for message in heard for word in message.words]
    assert sum(message.samples for message in heard) == CHUNK * len(words)
    return words


@pytest.mark.parametrize("encoding", ["json", "msgpack"])
def test_markup_reaches_the_voice_as_it_was_written(encoding: str) -> None:
    async def main() -> None:
        begin()
        async with gateway() as running:
            client = await running.greeted(encoding)
            await speak(client, 1, "warm up")  # late imports
            with watched() as seen:
                for epoch, text in enumerate(MARKUP.values(), 2):
                    assert await speak(client, epoch, text) == text.split()
            assert seen == []

    uvloop.run(main())
