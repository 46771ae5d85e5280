"""`search doctor`: is everything that a run depends on as it should be?"""

from search.cli.options import DEFAULT_STORE, JsonOption, StoreOption
from search.cli.output import print_json, write


def doctor(store: StoreOption = DEFAULT_STORE, json: JsonOption = False) -> None:
    """Examine versions, machine, folders, store, plugins and package names.

    For every study it says what it is doing, or why nothing of it is running. Ends with code 1
    when something is wrong; whatever is not ok says what to do.
    """
    from search.errors import RunFailedError
    from search.settings import settings
    from search.upkeep.doctor import examine

    findings = []
    for finding in examine(store, settings()):
        findings.append(finding)
        if not json:
            write(f"{finding.status:<8} {finding.topic:<18} {finding.detail}")
            if finding.advice:
                write(f"{'':<8} {'':<18} -> {finding.advice}")
    if json:
        print_json(findings)
    wrong = sum(finding.status == "wrong" for finding in findings)
    if wrong:
        raise RunFailedError(f"{wrong} thing{'s are' if wrong > 1 else ' is'} wrong, see above")
