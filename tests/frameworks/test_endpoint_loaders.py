"""Models and data sets by name, from the endpoint of weftd, by the libraries as they are and without a mount."""
import json
import sys
import types

import pytest
from diffusers import DDPMPipeline, DDPMScheduler, UNet2DModel
from test_hub import CLIENT, digits, offline, state_hash

from daemonlib import Daemon
from endpointlib import client, client_environment, free_port
from weftlib import Mount, Store, run

ROWS = 500
# Prints the digest of the image that a pipeline makes from one seed. argv: the name or the directory of the pipeline.
DRAW = "import hashlib, json, sys, torch; from diffusers import DDPMPipeline;" \
       "draw = DDPMPipeline.from_pretrained(sys.argv[1]);" \
       "images = draw(generator=torch.manual_seed(5), num_inference_steps=2, output_type='np').images;" \
       "print(json.dumps([list(images.shape), hashlib.sha256(images.tobytes()).hexdigest()]))"


def write_pipeline(directory):
    """A pipeline of diffusers: a model and a scheduler, in a directory each."""
    blocks = {"down_block_types": ("DownBlock2D", "AttnDownBlock2D"), "up_block_types": ("AttnUpBlock2D", "UpBlock2D")}
    model = UNet2DModel(sample_size=8, layers_per_block=1, block_out_channels=(8, 16), norm_num_groups=4, **blocks)
    DDPMPipeline(model, DDPMScheduler(num_train_timesteps=10)).save_pretrained(directory)
    return directory


@pytest.fixture(scope="module")
def loaded(sources, tmp_path_factory):
    """What hub_client.py got by name; and the store, which no mount has."""
    area = tmp_path_factory.mktemp("endpoint")
    store = Store(area / "store")
    for (model, number), source in sources.items():
        store.publish(source, name=model)
    store.weft("tag", "org/minilm@1", "prod")
    table = area / "table"
    table.mkdir()
    (table / "train.csv").write_text("text,label\n" + "".join(f"row {n},{n % 7}\n" for n in range(ROWS)))
    (table / "test.jsonl").write_text("".join(json.dumps({"text": f"row {n}", "label": n % 7}) + "\n" for n in range(50)))
    store.weft("import", "--dataset", table, "--name", "org/table")
    (table / "test.jsonl").unlink()
    (table / "test.csv").write_text("text,label\nrow,1\n")
    store.weft("import", "--dataset", table, "--name", "org/plain")
    store.publish(write_pipeline(area / "pipeline"), name="org/pipeline")
    port = free_port()
    with Daemon(store, "--hub-listen", f"127.0.0.1:{port}"):
        made = types.SimpleNamespace(store=store, sources=sources, area=area, home=area / "home",
                                     endpoint=f"http://127.0.0.1:{port}")
        done = run([sys.executable, CLIENT, digits(made, 1)], env=client_environment(made.endpoint, made.home), timeout=300)
        made.got = json.loads(done.stdout.splitlines()[-1])
        yield made


def test_a_model_by_name_and_revision(loaded):
    first, second = (state_hash(loaded.sources["org/minilm", number]) for number in (1, 2))
    assert loaded.got["model"] == {"main": second, "prod": first, "1": first, "2": second, digits(loaded, 1): first}


@pytest.mark.parametrize("what", ["tokens", "features", "sentence"])
def test_other_ways_to_load_by_name(loaded, what):
    got = loaded.got[what]
    assert len(got["prod"]) >= 4 and got["prod"] == got["1"]
    assert what == "tokens" or got["main"] != got["1"]


def test_load_dataset(loaded):
    script = "import json; from datasets import load_dataset; one = load_dataset('org/table', data_files='train.csv')['train'];" \
             "other = load_dataset('org/table', data_files='test.jsonl', revision='1', split='train');" \
             "stream = load_dataset('org/table', data_files='train.csv', streaming=True, split='train');" \
             "plain = {name: len(part) for name, part in load_dataset('org/plain').items()};" \
             "print(json.dumps([len(one), one[7], len(other), next(iter(stream)), plain]))"
    row = {"text": "row 7", "label": 0}
    assert client(script, loaded.endpoint, loaded.home) == [ROWS, row, 50, {"text": "row 0", "label": 0},
                                                             {"train": ROWS, "test": 1}]


def test_a_pipeline_of_diffusers(loaded, tmp_path):
    """From the endpoint, and from a mount, it makes the image that it makes from its own directory."""
    expected = client(DRAW, loaded.endpoint, loaded.home, loaded.area / "pipeline")
    assert expected[0] == [1, 8, 8, 3]
    assert client(DRAW, loaded.endpoint, loaded.home, "org/pipeline") == expected
    with Mount(loaded.store, tmp_path / "mnt") as mount:
        done = run([sys.executable, "-c", DRAW, "org/pipeline"], env=offline(mount, tmp_path / "home"), timeout=300)
        assert json.loads(done.stdout.splitlines()[-1]) == expected


def test_the_command_hf(loaded, tmp_path):
    command = [sys.executable, "-m", "huggingface_hub.cli.hf", "download", "org/minilm", "config.json", "--revision", "prod",
               "--local-dir", tmp_path / "here"]
    run(command, env=client_environment(loaded.endpoint, loaded.home), timeout=120)
    source = loaded.sources["org/minilm", 1] / "config.json"
    assert (tmp_path / "here/config.json").read_bytes() == source.read_bytes()
