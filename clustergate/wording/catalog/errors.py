"""Errors that have words of their own: those of a benchmark's folder, or of an added package."""

WORDS = {
    "error.other": ("{sentence}", "", "do what the sentence says"),
    "output.wrong": ("{problem}", "", ""),
}
