"""The pipeline's error."""


class PipelineError(Exception):
    """The pipeline cannot go on. str() is one line that says what is wrong and what to do."""
