"""What the pipeline tells its user when it cannot go on."""


class PipelineError(Exception):
    """str() is one line that says what is wrong and what to do."""
