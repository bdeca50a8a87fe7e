"""The HTTP session figures are pushed in: it goes to the address the user wrote, with nobody's secrets."""

import requests


class DirectSession(requests.Session):
    """Follows no redirect, which would lead past the address's check, and reads no `.netrc`.

    What is for this machine (`is_near`) is told to no proxy of the environment either.
    """

    def __init__(self, *, is_near: bool) -> None:
        super().__init__()
        self.trust_env = not is_near
        # Somebody's login for that host, else taken from their `.netrc`, is none of ours.
        self.auth = _add_nothing

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Nowhere: the redirect itself is the answer, which is no success."""
        del resp
        return None


def _add_nothing(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request
