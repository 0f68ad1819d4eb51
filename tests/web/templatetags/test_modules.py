"""The links by which a page's modules come all at once."""

from __future__ import annotations

import re

from django.template import Context, Template

from tests.parts.places import ROOT


def test_each_module_that_the_page_runs_has_its_link() -> None:
    html = Template("{% load modules %}{% modulepreload 'voiceapp/app.js' %}").render(Context())
    linked = re.findall(r'<link rel="modulepreload" href="/static/(voiceapp/[^"]+)">', html)
    assert linked[0] == "voiceapp/app.js"
    assert len(linked) == len(set(linked))
    folder = ROOT / "static"
    of_the_page = {path.relative_to(folder).as_posix() for path in (folder / "voiceapp").rglob("*.js")}
    assert (
        {"voiceapp/call.js", "voiceapp/audio/player.js", "voiceapp/ui/view.js"} < set(linked) <= of_the_page
    )
