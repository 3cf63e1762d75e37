"""What holds for every test of the gateway, whatever else it is about."""

from secret_ear import no_secret_is_logged as no_secret_is_logged
