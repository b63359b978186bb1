"""A store with a service account and a pod, and the parts of the server that handle tokens."""

from __future__ import annotations

import random

from batkube.api.access.authenticator import Authenticator
from batkube.api.access.service_account_tokens import ServiceAccountTokens
from batkube.api.access.token_requests import TokenRequestHandler
from batkube.api.requests.statuses import Failure
from batkube.api.requests.users import User
from batkube.cluster.store import Key, Store
from batkube.kernel.instants import START


class Cluster:
    """A store with a service account and a pod, and a clock to set."""

    def __init__(self) -> None:
        self.now = START
        self.store = Store()
        account = {"metadata": {"name": "sa", "namespace": "d", "uid": "u-sa"}}
        pod = {
            "metadata": {"name": "p", "namespace": "d", "uid": "u-p"},
            "spec": {"serviceAccountName": "sa", "nodeName": "n"},
        }
        self.store.create("serviceaccounts", [Key("d/sa")], [account], self.now)
        self.store.create("pods", [Key("d/p")], [pod], self.now)
        self.tokens = ServiceAccountTokens(self.store, random.Random(1), lambda: self.now)
        self.requests = TokenRequestHandler(self.store, self.tokens)
        self.authenticator = Authenticator({}, self.tokens)

    def user(self, token: str) -> User | None:
        try:
            return self.authenticator.authenticate({"authorization": f"Bearer {token}"})
        except Failure:
            return None

    def token(self, **spec: object) -> str:
        answer = self.requests.issue({"spec": spec}, "d", "sa", self.now)
        token = answer["status"]["token"]
        assert isinstance(token, str)
        return token
