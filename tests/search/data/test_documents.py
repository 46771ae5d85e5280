from search.data.documents import (
    Document,
    collect,
    documents_of_rows,
    limit_words,
    split_at_headings,
)

LINES = (
    "",
    "= Homarus gammarus =",
    "",
    "The European lobster .",
    "",
    "= = Description = =",
    "",
    "It is large .",
    "",
    "= = = Colour = = =",
    "",
    "Blue .",
    "",
    "= Frank Ocean =",
    "",
    "A singer ; 1 = 1 .",
)
WIKITEXT = "".join(f" {line} \n" for line in LINES)  # as published: a blank at both ends


def test__split_at_headings__wikitext__one_document_per_top_level_heading() -> None:
    found = split_at_headings("wiki", WIKITEXT)
    assert [document.name for document in found] == [
        "wiki#Homarus gammarus",
        "wiki#Frank Ocean",
    ]
    assert "Blue ." in found[0].text
    assert "".join(document.text for document in found).split() == WIKITEXT.split()


def test__split_at_headings__text_before_the_first__is_a_document() -> None:
    found = split_at_headings("wiki", "before\n= A =\na\n= B =\nb\n")
    assert [document.text for document in found] == ["before\n", "= A =\na\n", "= B =\nb\n"]


def test__split_at_headings__one_heading_only__whole_text() -> None:
    text = "= A =\nsome text\n"
    assert split_at_headings("wiki", text) == [Document("wiki", text)]


def test__documents_of_rows__lines_of_wikitext__are_joined_to_articles() -> None:
    rows = WIKITEXT.splitlines(keepends=True)
    found = documents_of_rows("hub", rows)
    assert [document.name for document in found] == ["hub#Homarus gammarus", "hub#Frank Ocean"]


def test__documents_of_rows__plain_rows__one_document_each() -> None:
    assert [document.name for document in documents_of_rows("f", ["a", "b"])] == ["f:1", "f:2"]


def test__collect__blank_and_repeated_texts__are_dropped_and_counted() -> None:
    texts = ["a", " \n", "b", "a ", "c"]
    corpus = collect([Document(str(i), text) for i, text in enumerate(texts)], "here")
    assert [document.text for document in corpus.documents] == ["a", "b", "c"]
    assert corpus.n_dropped == 2


def test__sha256__text_moved_between_documents__differs() -> None:
    def hash_of(*texts: str) -> str:
        return collect([Document("", text) for text in texts], "").sha256

    assert hash_of("ab", "c") != hash_of("a", "bc") != hash_of("bc", "a")
    assert hash_of("ab", "c") == hash_of("ab", "c")


def test__limit_words__many_documents__keeps_order_and_limit_and_not_just_the_first() -> None:
    documents = [Document(str(i), f"word{i} " * 100) for i in range(50)]
    kept = limit_words(documents, 1050)
    numbers = [int(document.name) for document in kept]
    assert numbers == sorted(numbers)
    assert sum(len(document.text.split()) for document in kept) == 1050
    assert max(numbers) > 25


def test__limit_words__one_document__prefix_with_its_white_space() -> None:
    (kept,) = limit_words([Document("d", "one  two\nthree four")], 3)
    assert kept.text == "one  two\nthree"
