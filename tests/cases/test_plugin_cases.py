"""Broken and clashing plugin packages, and third-party configs, in real interpreters."""

import json

import pytest
from plugin_packages import lay_out, ok, run_python

BROKEN = {
    "broken-mixers.missing": "No module named 'broken_mixers_no_such_module'",
    "broken-mixers.raises": "no licence for this machine",
    "broken-mixers.exits": "SystemExit",
    "broken-mixers.no_mixer": "is not a subclass of mixers.base.TokenMixer",
    "broken-mixers.no_forward": "NoForward lacks forward",
    "broken-mixers.other_kind": "'broken-mixers.something'",
    "broken-mixers.no_claims": "traits() of its default config fails: KeyError: 'no such claim'",
    "broken-mixers.other_claims": "traits() of its default config gives dict, not MixerTraits",
    "broken-mixers.bad_default": "its default config is not valid: width: Input should be",
    "broken-mixers.no_schema": "the JSON Schema of its config fails: PydanticInvalidForJsonSchema",
}

LIST = """
import json, mixers
print(json.dumps({name: [i.distribution, i.version, i.broken]
                  for name, i in mixers.available().items()}))
mixers.available()
mixers.build("sepconv", d_model=16, max_seq_len=8)
"""


@pytest.fixture(scope="module")
def broken_site(tmp_path_factory):
    return lay_out("broken", tmp_path_factory.mktemp("broken"))


def test__C59__broken_plugins__one_warning_each_and_the_rest_works(broken_site):
    done = run_python(LIST, broken_site)
    listed = json.loads(ok(done))
    for kind, reason in BROKEN.items():
        assert listed[kind][:2] == ["broken-mixers", "1.2.3"]
        assert reason in listed[kind][2]
        lines = [line for line in done.stderr.splitlines() if f"{kind!r}" in line]
        assert len(lines) == 1
        assert "broken-mixers 1.2.3" in lines[0]
    assert all(entry[2] is None for kind, entry in listed.items() if kind not in BROKEN)
    assert done.stderr.count("PluginWarning") == len(BROKEN)


def test__C59__spec_that_needs_a_broken_plugin__is_refused_with_the_reason(broken_site):
    code = f"""
from mixers.spec import EncoderSpec, load
for kind in {list(BROKEN)!r}:
    try:
        load(EncoderSpec, dict(vocab_size=9, d_model=16, max_seq_len=8,
                               blocks=[dict(mixer=dict(kind=kind), d_ff=16)]))
    except ValueError as error:
        print(error)
"""
    lines = ok(run_python(code, broken_site, options=("-W", "ignore"))).splitlines()
    for line, reason in zip(lines, BROKEN.values(), strict=True):
        assert line.startswith("blocks.0.mixer: ")
        assert reason in line


def test__C59__commands__help_and_list_work_and_the_broken_one_is_named(broken_site):
    code = """
import sys
from search.cli import main
for words in (["--help"], ["mixers", "list"], ["mixers", "show", "broken-mixers.raises"]):
    sys.argv = ["search", *words]
    try:
        code = main()
    except SystemExit as end:
        code = end.code
    print("exit code", code or 0)
"""
    done = run_python(code, broken_site)
    output = ok(done)
    codes = [line for line in output.splitlines() if line.startswith("exit code")]
    assert codes == ["exit code 0", "exit code 0", "exit code 2"]
    for kind in BROKEN:
        assert f"broken: {kind} of broken-mixers 1.2.3" in output
    assert "no licence for this machine" in done.stderr


def test__C60__two_packages_one_name__neither_wins_and_both_are_named(tmp_path):
    sites = [lay_out(name, tmp_path / name) for name in ("twin_a", "twin_b", "usurper")]
    code = (
        LIST
        + """
from mixers.errors import BrokenPluginError
try:
    mixers.build("sepconv2", d_model=16, max_seq_len=8)
except BrokenPluginError as error:
    print(error)
print(type(mixers.build("attention", d_model=16, max_seq_len=8)).__module__)
"""
    )
    outputs = [
        ok(run_python(code, *order, options=("-W", "ignore"))) for order in (sites, sites[::-1])
    ]
    assert outputs[0] == outputs[1]
    listing, clash, module = outputs[0].splitlines()
    listed = json.loads(listing)
    assert listed["attention"] == ["mixsearch", listed["sepconv"][1], None]
    assert module == "mixers.builtin.attention"
    assert "twin-a 1.2.3" in clash
    assert "twin-b 1.2.3" in clash
    for name in ("attention (usurper)", "SepConv"):
        assert "never replaced" in listed[name][2]
        assert "usurper 1.2.3" in listed[name][2]
        assert "mixsearch" in listed[name][2]
    for name in ("twin-a.Blend", "twin-a.blend"):
        assert "claimed more than once" in listed[name][2]


SAVE = """
import sys
from mixers.spec import BlockSpec, EncoderSpec, canonical_json
EncoderSpec.of("sepconv, attention", d_ff=16, vocab_size=9, d_model=16, max_seq_len=8)
sys.path.insert(0, {site!r})
from mixers.registry import mixer_registry
mixer_registry.reset()
spec = EncoderSpec.of(
    "sepconv(n_filters=4), good-mixers.taps(delays=[2, 5], gain=0.25), attention*2, "
    "good-mixers.taps, identity", d_ff=16, vocab_size=9, d_model=16, max_seq_len=8)
assert EncoderSpec.model_validate(spec.model_dump()) == spec
assert EncoderSpec.model_validate(spec.model_dump(mode="json")) == spec
assert EncoderSpec.of(spec.notation, d_ff=16, vocab_size=9, d_model=16, max_seq_len=8) == spec
import json, pickle
assert pickle.loads(pickle.dumps(spec)) == spec
schema = EncoderSpec.model_json_schema()
assert "good-mixers.taps" in json.dumps(schema["$defs"]["BlockSpec"]), schema
assert "delays" in schema["$defs"]["TapsConfig"]["properties"]
print(canonical_json(spec))
"""
LOAD = """
import sys
from mixers.spec import EncoderSpec, canonical_json
text = {text!r}
spec = EncoderSpec.model_validate_json(text)
mixer = spec.blocks[1].mixer
assert (mixer.delays, type(mixer.delays), mixer.gain) == ((2, 5), tuple, 0.25)
assert type(mixer).__name__ == "TapsConfig" and spec.code == "StAAt0"
assert canonical_json(spec) == text
print(spec.arch_id)
"""
MISSING = """
from mixers.spec import EncoderSpec, load
try:
    load(EncoderSpec, {text!r})
except ValueError as error:
    print(error)
"""


def test__C27__third_party_config__survives_dump_and_load_in_a_new_process(tmp_path):
    site = lay_out("good", tmp_path / "site")
    text = ok(run_python(SAVE.format(site=str(site)))).strip()
    assert json.loads(text)["blocks"][1]["mixer"] == {
        "kind": "good-mixers.taps",
        "delays": [2, 5],
        "gain": 0.25,
    }
    ok(run_python(LOAD.format(text=text), site))
    lines = ok(run_python(MISSING.format(text=text))).splitlines()
    assert lines[0] == (
        "blocks.1.mixer: unknown kind 'good-mixers.taps'; "
        "known: attention, average, bproj, dynamicconv, fourier, hardmax_shift, identity, "
        "lightconv, sepconv, sparse_attention"
    )
