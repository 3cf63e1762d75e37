import pytest


@pytest.fixture(autouse=True, scope="session")
def one_thread() -> None:
    """Threads of tiny matrices wait for each other longer than they work."""
    try:
        import torch
    except ImportError:
        return
    torch.set_num_threads(1)
