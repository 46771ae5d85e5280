"""Never imported: the name is refused first."""

raise AssertionError("a refused name must not be imported")
