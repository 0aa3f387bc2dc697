"""The vocabulary: plain types, reasons and words, formats, files. No room is below it."""
