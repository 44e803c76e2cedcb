"""The pipeline's errors. str() of each is one line that says what is wrong and what to do."""


class PipelineError(Exception):
    """The pipeline cannot go on."""


class SparkUnavailable(Exception):
    """Spark cannot start."""


class SparkFailed(Exception):
    """Spark failed in the middle of its work, and no mistake of the user is known to be the cause."""
