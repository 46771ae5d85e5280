from own_study import own_study

from mixers.notation import parse_architecture
from search.spec.study_file import study_from, with_overrides
from search.tasks.metrics import Accuracy, Loss, metric_registry
from search.training.training_key import training_key

PLUGINS = {
    "sepconv": ("mixsearch", "1"),
    "acme.mix": ("acme", "2"),
    "attention": ("mixsearch", "1"),
}


def key(*overrides, stack="sepconv*4", fingerprint="f", plugins=PLUGINS):
    study = study_from(with_overrides(own_study().model_dump(), overrides))
    spec = study.encoder_spec(parse_architecture(stack))
    return training_key(study, spec, fingerprint=fingerprint, plugins=plugins)


def test__training_key__what_changes_a_result__changes_it():
    changed = [
        key("training.steps=7"),
        key("training.learning_rate=0.1"),
        key("seed=5"),
        key("objectives=[error]"),
        key("task.source_sha256=" + "a" * 64),
        key(fingerprint="g"),
    ]
    assert len({key(), *changed}) == len(changed) + 1


def test__training_key__what_does_not__leaves_it():
    assert key() == key("strategy.name=tpe") == key("tolerance=1", "space.choices=[sepconv, bproj]")
    assert key() == key(stack="attention*2") == key("baselines.cheap=bproj")
    newer = {kind: (owner, version + "1") for kind, (owner, version) in PLUGINS.items()}
    assert key(plugins=newer) == key()


def test__training_key__third_party_version__changes_it_for_its_own_mixers_only():
    theirs = PLUGINS | {"sepconv": ("acme", "1")}
    newer = PLUGINS | {"sepconv": ("acme", "2")}
    assert key(plugins=theirs) != key(plugins=newer)
    assert key(plugins=theirs, stack="attention") == key(plugins=newer, stack="attention")


def test__training_key__changed_metric_of_a_script__changes_it():
    settings = ("task={kind: mlm}", "objectives=[loss]", "metrics=[local.own]")
    keys = []
    try:
        for metric in (Loss, Accuracy):
            metric_registry().register(metric, "local.own")
            keys.append(key(*settings, stack="sepconv"))
    finally:
        metric_registry().unregister("local.own")
    assert keys[0] != keys[1]
