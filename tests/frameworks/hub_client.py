"""Loads a model by its name on the Hugging Face hub, offline. Prints what it got as JSON. argv: the 40 digits of a
snapshot."""
import json
import os
import sys

REPO = "org/minilm"


def model(revision):
    from transformers import AutoModel
    return hash_of(AutoModel.from_pretrained(REPO, revision=revision).state_dict())


def hash_of(state):
    import hashlib
    whole = hashlib.sha256()
    for name, tensor in state.items():
        whole.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return whole.hexdigest()


def tokens(revision):
    from transformers import AutoTokenizer
    return AutoTokenizer.from_pretrained(REPO, revision=revision)("weights are files")["input_ids"]


def features(revision):
    from transformers import pipeline
    return pipeline("feature-extraction", model=REPO, revision=revision)("weights are files")[0][0][:4]


def sentence(revision):
    from sentence_transformers import SentenceTransformer
    return SentenceTransformer(REPO, revision=revision, device="cpu").encode("weights are files").tolist()[:4]


def snapshot(revision):
    from huggingface_hub import snapshot_download
    directory = snapshot_download(REPO, revision=revision)
    return [directory, sorted(os.listdir(directory))]


def scan():
    from huggingface_hub import scan_cache_dir
    info = scan_cache_dir()
    return [[repo.repo_id, len(repo.revisions), sorted(repo.refs)] for repo in info.repos], [str(w) for w in info.warnings]


def everything(digits):
    """By every kind of revision, and by every library."""
    return {"model": {revision: model(revision) for revision in ("main", "prod", "1", "2", digits)},
            "tokens": {revision: tokens(revision) for revision in ("prod", "1")},
            "features": {revision: features(revision) for revision in ("main", "prod", "1")},
            "sentence": {revision: sentence(revision) for revision in ("main", "prod", "1")},
            "snapshot": snapshot("prod"), "scan": scan()}


if __name__ == "__main__":
    print(json.dumps(everything(sys.argv[1])))
