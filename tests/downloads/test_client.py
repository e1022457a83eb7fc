"""Hugging Face's own client takes the hub double for a hub."""

import hashlib
from pathlib import Path

import pytest
from huggingface_hub import hf_hub_download, hf_hub_url, get_hf_file_metadata, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    GatedRepoError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)

TINY = "mlx-community/tiny-llama"
WIDE = "mlx-community/wide-llama"
GATED = "someone/gated-llama"


def weights(folder: Path, repository: str) -> bytes:
    return (folder / repository / "model.safetensors").read_bytes()


def test_models_are_listed_by_owner_name_and_rank(double):
    ids = [model.id for model in double.api.list_models(sort="downloads")]
    assert ids == [TINY, WIDE, GATED]
    ids = [model.id for model in double.api.list_models(author="mlx-community", search="WIDE")]
    assert ids == [WIDE]
    ids = [model.id for model in double.api.list_models(sort="likes", filter="mlx")]
    assert ids == [GATED, WIDE, TINY]


def test_pages_are_followed(double):
    import huggingface_hub.utils._pagination as pagination

    pages = pagination.paginate(
        double.url + "/api/models", params={"limit": 2, "sort": "downloads"}, headers={}
    )
    assert [model["id"] for model in pages] == [TINY, WIDE, GATED]


def test_a_model_is_described(double, folder):
    info = double.api.model_info(TINY, files_metadata=True)
    assert info.id == TINY
    assert info.gated is False
    assert "mlx" in info.tags
    assert len(info.sha) == 40
    files = {file.rfilename: file for file in info.siblings}
    content = weights(folder, TINY)
    assert files["model.safetensors"].size == len(content)
    assert files["model.safetensors"].lfs.sha256 == hashlib.sha256(content).hexdigest()
    readme = (folder / TINY / "README.md").read_bytes()
    blob = hashlib.sha1(b"blob %d\0" % len(readme) + readme).hexdigest()
    assert files["README.md"].lfs is None
    assert files["README.md"].blob_id == blob
    assert double.api.model_info(GATED).gated == "auto"
    tree = {entry.path: entry.size for entry in double.api.list_repo_tree(TINY, recursive=True)}
    assert tree == {name: file.size for name, file in files.items()}


def test_metadata_of_large_and_small_files(double, folder):
    large = get_hf_file_metadata(
        hf_hub_url(TINY, "model.safetensors", endpoint=double.url), endpoint=double.url
    )
    content = weights(folder, TINY)
    assert large.size == len(content)
    assert large.etag == hashlib.sha256(content).hexdigest()
    assert large.commit_hash == double.api.model_info(TINY).sha
    assert not large.location.startswith(double.url), "large files are elsewhere"
    small = get_hf_file_metadata(
        hf_hub_url(TINY, "config.json", endpoint=double.url), endpoint=double.url
    )
    assert small.size == (folder / TINY / "config.json").stat().st_size
    assert small.location.startswith(double.url)


def test_a_file_arrives(double, folder, cache):
    path = hf_hub_download(
        TINY, "model.safetensors", endpoint=double.url, token=False, cache_dir=cache
    )
    assert Path(path).read_bytes() == weights(folder, TINY)


def test_a_snapshot_arrives_in_spite_of_broken_connections(double, folder, cache):
    size = len(weights(folder, WIDE))
    double.behave(drop_after=[size // 3])
    path = snapshot_download(WIDE, endpoint=double.url, token=False, cache_dir=cache)
    names = sorted(file.name for file in Path(path).iterdir())
    assert names == sorted(file.name for file in (folder / WIDE).iterdir())
    assert (Path(path) / "model.safetensors").read_bytes() == weights(folder, WIDE)
    starts = [
        request["start"] for request in double.requests() if request["path"] == "model.safetensors"
    ]
    assert starts[0] == 0 and starts[-1] > 0, "it went on where it was"


def test_a_commit_stays_what_it_was(double, cache):
    first = double.api.model_info(TINY).sha
    second = double.commit(TINY, "README.md", "# Another\n")
    assert double.api.model_info(TINY).sha == second != first
    old = hf_hub_download(
        TINY, "README.md", revision=first, endpoint=double.url, token=False, cache_dir=cache
    )
    new = hf_hub_download(TINY, "README.md", endpoint=double.url, token=False, cache_dir=cache)
    assert "tiny-llama" in Path(old).read_text()
    assert Path(new).read_text() == "# Another\n"


def test_errors_are_those_of_the_hub(double, cache):
    def download(repository, path="config.json", **options):
        options = {"token": False, **options}
        return hf_hub_download(
            repository, path, endpoint=double.url, cache_dir=cache, **options
        )

    with pytest.raises(GatedRepoError):
        download(GATED)
    with pytest.raises(RepositoryNotFoundError):
        double.api.model_info("nobody/nothing")
    with pytest.raises(RevisionNotFoundError):
        double.api.model_info(TINY, revision="v9")
    with pytest.raises(EntryNotFoundError):
        download(TINY, "missing.json")
    double.behave(tokens=["hf_good"])
    with pytest.raises(GatedRepoError):
        download(GATED, token="hf_bad")
    assert Path(download(GATED, token="hf_good")).is_file()
    for refusal, error, status in [
        ("gated", GatedRepoError, 403),
        ("not_found", RepositoryNotFoundError, 404),
        ("unauthorized", RepositoryNotFoundError, 401),
    ]:
        double.behave(refuse=refusal)
        with pytest.raises(error) as raised:
            double.api.model_info(TINY)
        assert raised.value.response.status_code == status


def test_limits_are_told(double):
    double.behave(refuse="rate_limited", retry_after_seconds=0)
    with pytest.raises(HfHubHTTPError) as raised:
        double.api.model_info(TINY)
    assert raised.value.response.status_code == 429


def test_corrupted_files_are_not_what_their_digest_says(double, folder, cache):
    double.behave(corrupting=1)
    path = hf_hub_download(
        TINY, "model.safetensors", endpoint=double.url, token=False, cache_dir=cache
    )
    expected = double.api.model_info(TINY, files_metadata=True)
    sha256 = next(file.lfs.sha256 for file in expected.siblings if file.lfs)
    assert hashlib.sha256(Path(path).read_bytes()).hexdigest() != sha256
