"""The public views: what SQL written by users may rely on.

They are made anew from here whenever a store is created or upgraded. A column keeps its name and
meaning while `VIEWS_VERSION` stays; columns may be added. Both databases run the same text.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from search.errors import InputError

VIEWS_VERSION = 1

SIGN = "CASE s.direction WHEN 'minimize' THEN 1 ELSE -1 END"

# Parted by name, so that a condition on the study reaches the rows below the window.
LEADERBOARD_COLUMNS = """
    s.name AS study,
    ROW_NUMBER() OVER (PARTITION BY s.name ORDER BY a.score, a.arch_id) AS place,
    a.arch_id, a.code, a.notation, a.n_layers, s.objective, s.direction,
    a.mean, a.sd, a.n, a.test_mean, a.test_sd, a.test_n,
    a.best_trial_id AS best_trial, a.best, a.params, a.flops, a.latency_s, a.probe, a.is_baseline
"""


@dataclass(frozen=True)
class View:
    """A view with its contract.

    Attributes:
        name: Its name.
        doc: One row is what, in which order.
        columns: Name -> meaning, in order.
        order: Columns that put the rows in order.
        select: The query.
    """

    name: str
    doc: str
    columns: dict[str, str]
    order: str
    select: str


TRIALS_FLAT = View(
    name="trials_flat",
    doc="One row a trial, in every state.",
    columns={
        "study": "Name of the study.",
        "trial": "Id of the trial, as the other tables name it.",
        "number": "Number within the study.",
        "phase": "`recipe`, `baseline`, `screen`, `search` or `confirm`.",
        "role": "Name of the baseline or finalist.",
        "state": "`completed` has a result; see the table `trials`.",
        "reason": "Why it is in that state.",
        "arch_id": "Id of the architecture.",
        "code": "One character a layer, for reading.",
        "notation": "The mixers in compact notation.",
        "n_layers": "Number of blocks.",
        "seed": "Training seed.",
        "seed_index": "0 for the first seed of an architecture, k for its k-th repeat.",
        "objective": "Name of the metric that ranks.",
        "direction": "`minimize` or `maximize`.",
        "selection": "The objective on the selection split.",
        "test": "The objective on the test split, where that was read.",
        "params": "Parameters.",
        "flops": "FLOPs of one forward pass of one sequence.",
        "step_s": "Training step, median seconds.",
        "latency_s": "Forward pass, median seconds.",
        "device": "Device of both times.",
        "probe": "Contextual-mapping probe after training.",
        "peak_memory": "Peak memory of the trial, bytes.",
        "recipe": "What its training changes of the study's recipe, JSON; `{}` = nothing.",
        "steps": "Training steps made.",
        "seconds": "Seconds of the trial.",
        "training_flops": "FLOPs reserved or spent on training.",
        "reused_from": "Trial of another study whose result this is.",
        "worker": "Worker of the newest attempt.",
        "error": "First line of the error.",
        "created_at": "When it was reserved, UTC.",
        "finished_at": "When it ended, UTC.",
    },
    order="trial",
    select="""
SELECT s.name AS study, t.id AS trial, t.number, t.phase, t.role, t.state, t.reason, t.arch_id,
    t.code, t.notation, t.n_layers, t.seed, t.seed_index, s.objective, s.direction,
    es.value AS selection, et.value AS test, c.params, c.flops, c.step_s, c.latency_s, c.device,
    p.value AS probe, c.peak_memory_bytes AS peak_memory,
    CAST(t.recipe AS TEXT) AS recipe, t.steps, t.seconds,
    t.training_flops, t.reused_from, w.name AS worker,
    t.error, t.created_at, t.finished_at
FROM trials t
JOIN studies s ON s.id = t.study_id
LEFT JOIN evaluations es
    ON es.trial_id = t.id AND es.split = 'selection' AND es.metric = s.objective
LEFT JOIN evaluations et ON et.trial_id = t.id AND et.split = 'test' AND et.metric = s.objective
LEFT JOIN costs c ON c.trial_id = t.id
LEFT JOIN probes p ON p.trial_id = t.id AND p.moment = 'final' AND p.name = 'probe'
LEFT JOIN workers w ON w.id = t.worker_id
""",
)

LEADERBOARD = View(
    name="leaderboard",
    doc="One row per study and architecture with a completed trial, best first. Trials that "
    "diverged, failed, were pruned or stopped, and trials of another recipe than the study's, "
    "are not in it.",
    columns={
        "study": "Name of the study.",
        "place": "1 is best, by the mean on selection and the study's direction.",
        "arch_id": "Id of the architecture.",
        "code": "One character a layer, for reading.",
        "notation": "The mixers in compact notation.",
        "n_layers": "Number of blocks.",
        "objective": "Name of the metric that ranks.",
        "direction": "`minimize` or `maximize`.",
        "mean": "Mean of the objective on the selection split, over seeds.",
        "sd": "Its standard deviation over seeds (n - 1); none for one seed.",
        "n": "Seeds behind the two.",
        "test_mean": "Mean of the objective on the test split.",
        "test_sd": "Its standard deviation.",
        "test_n": "Seeds behind those two.",
        "best_trial": "Id of the trial with the best objective on selection.",
        "best": "That objective.",
        "params": "Parameters.",
        "flops": "FLOPs of one forward pass of one sequence.",
        "latency_s": "Forward pass of the best trial, median seconds.",
        "probe": "Contextual-mapping probe of the best trial after training.",
        "is_baseline": "Whether a baseline has this architecture.",
    },
    order="study, place",
    select=f"""
SELECT {LEADERBOARD_COLUMNS}
FROM architectures a JOIN studies s ON s.id = a.study_id
ORDER BY s.name, a.score, a.arch_id
""",
)

LAYER_EFFECTS = View(
    name="layer_effects",
    doc="One row per study, layer and mixer kind, over the architectures of full depth. The "
    "difference is raw: it says nothing about the other layers nor about chance. Effects with "
    "intervals are the report's.",
    columns={
        "study": "Name of the study.",
        "layer": "Counts from 0 at the input.",
        "kind": "Mixer kind of that layer.",
        "n": "Architectures behind the row, each counted once.",
        "mean": "Mean of their means on the selection split.",
        "difference": "`mean` minus the mean of the best uniform stack of the reference kind.",
    },
    order="study, layer, kind",
    select=f"""
SELECT s.name AS study, b.layer, b.kind, COUNT(*) AS n, AVG(a.mean) AS mean,
    AVG(a.mean) - MIN({SIGN} * r.score) AS difference
FROM architectures a
JOIN studies s ON s.id = a.study_id AND s.n_layers = a.n_layers
JOIN trial_blocks b ON b.trial_id = a.best_trial_id
LEFT JOIN (
    SELECT u.study_id, MIN(u.score) AS score
    FROM architectures u
    JOIN studies us ON us.id = u.study_id AND us.n_layers = u.n_layers
        AND us.reference_kind = u.uniform_kind
    GROUP BY u.study_id
) r ON r.study_id = a.study_id
GROUP BY s.name, b.layer, b.kind
""",
)

PARETO = View(
    name="pareto",
    doc="The rows of `leaderboard`, with a mark on those that no other row beats: as good in "
    "mean, FLOPs and parameters, and better in one. Latency is left out, since times of unlike "
    "devices do not compare.",
    columns={
        **LEADERBOARD.columns,
        "is_pareto": "Whether no other architecture of the study beats it.",
    },
    order="study, place",
    select=f"""
SELECT {LEADERBOARD_COLUMNS}, a.is_pareto
FROM architectures a JOIN studies s ON s.id = a.study_id
ORDER BY s.name, a.score, a.arch_id
""",
)

VERDICTS = View(
    name="verdicts",
    doc="The newest answer's own table, written whenever an answer is made.",
    columns={
        "study": "Name of the study.",
        "place": "Order in the answer, from 0.",
        "contrast": "What is compared with what.",
        "estimate": "The difference.",
        "low": "Lower end of its interval.",
        "high": "Upper end of its interval.",
        "unit": "Unit of the three.",
        "n": "Runs behind it.",
        "verdict": "The verdict's words.",
        "kind": "`confirmatory` was declared before the run; `exploratory` was found in it.",
        "p_value": "Adjusted for the whole family.",
        "made_at": "When the answer was made, UTC.",
    },
    order="study, place",
    select="""
SELECT s.name AS study, v.place, v.contrast, v.estimate, v.low, v.high, v.unit, v.n, v.verdict,
    v.kind, v.p_value, v.made_at
FROM study_verdicts v JOIN studies s ON s.id = v.study_id
ORDER BY s.name, v.place
""",
)

VERSION = View(
    name="views_version",
    doc="One row: the version of this contract.",
    columns={"version": "Rises when a column changes its name or meaning."},
    order="version",
    select=f"SELECT {VIEWS_VERSION} AS version",
)

VIEWS: tuple[View, ...] = (TRIALS_FLAT, LEADERBOARD, LAYER_EFFECTS, PARETO, VERDICTS, VERSION)


def find_view(name: str) -> View:
    """Return a public view.

    Raises:
        InputError: There is none of that name; lists those there are.
    """
    for view in VIEWS:
        if view.name == name:
            return view
    raise InputError(
        f"there is no view {name!r}; the views are {', '.join(view.name for view in VIEWS)}"
    )


def drop_views(connection: Connection) -> None:
    """Drop the views; the tables under them can then be changed."""
    for view in VIEWS:
        connection.execute(text(f"DROP VIEW IF EXISTS {view.name}"))


def create_views(connection: Connection) -> None:
    """Create the views of this version."""
    for view in VIEWS:
        connection.execute(text(f"CREATE VIEW {view.name} AS {view.select.strip()}"))
