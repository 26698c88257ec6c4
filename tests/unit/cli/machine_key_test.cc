#include "cli/shared/machine_key.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include "testing.h"
#include "weft/names.h"

using weft::driver_version;
using weft::key_component;
using weft::machine_key;
using weft::processor_facts;
using weft::testing::TempDir;
using weft::testing::write_file;

namespace {

constexpr char kX86[] =
    "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 1\nmodel name\t: AMD EPYC 9354\n"
    "flags\t\t: fpu vme sse4_1 ht avx2 syscall avx512f bmi2\n\nprocessor\t: 1\nmodel name\t: another\n";
constexpr char kDriver[] =
    "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
    "GCC version:  gcc version 12.2.0\n";

void write_python(const std::string& prefix) {
  write_file(prefix + "/bin/python3", "#!/bin/sh\n");
  REQUIRE(::chmod((prefix + "/bin/python3").c_str(), 0755) == 0);
}

}  // namespace

TEST_CASE("the facts of a processor are its model and the flags that compilers use") {
  CHECK(processor_facts(kX86) == "AMD EPYC 9354 sse4_1 avx2 avx512f bmi2");
  CHECK(processor_facts("processor : 0\nFeatures : fp asimd sve\nCPU part : 0xd40\n") == "part 0xd40 fp asimd sve");
  CHECK(processor_facts("").empty());
  CHECK(processor_facts("no colon\n: \n::\n").empty());
}

TEST_CASE("the driver's version is the first number with a point in the first line") {
  CHECK(driver_version(kDriver) == "550.54.15");
  CHECK(driver_version("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.1  Release Build") == "570.1");
  CHECK(driver_version("no version\n1.2\n").empty());
  CHECK(driver_version("").empty());
}

TEST_CASE("the key of a machine has its processor, its GPUs and the packages of its Python") {
  const TempDir dir;
  const std::string root = dir / "root";
  CHECK(machine_key(root, "").empty());
  write_file(root + "/proc/cpuinfo", kX86);
  CHECK(machine_key(root, "") == "cpu: AMD EPYC 9354 sse4_1 avx2 avx512f bmi2");
  write_file(root + "/proc/driver/nvidia/version", kDriver);
  for (const char* gpu : {"0000:01:00.0", "0000:02:00.0"})
    write_file(root + "/proc/driver/nvidia/gpus/" + gpu + "/information", "Model: \t\t NVIDIA H200\nIRQ: 7\n");
  const std::string prefix = dir / "venv";
  write_python(prefix);
  const std::string packages = prefix + "/lib/python3.11/site-packages/";
  for (const char* name : {"torch-2.9.0+cu128", "triton-3.5.0", "torchvision-0.24.0", "torch", "numpy-2.0"})
    write_file(packages + name + ".dist-info/METADATA", "");
  CHECK(machine_key(root, "/nowhere:" + prefix + "/bin:/usr/bin") ==
        "cpu: AMD EPYC 9354 sse4_1 avx2 avx512f bmi2; gpu: NVIDIA H200, driver 550.54.15; "
        "python: torch 2.9.0+cu128, triton 3.5.0");
}

TEST_CASE("the packages of the system's Python are below /usr and /usr/local") {
  const TempDir dir;
  write_python(dir / "usr");
  write_file(dir / "usr/lib/python3/dist-packages/torch-2.0.dist-info/METADATA", "");
  write_file(dir / "usr/local/lib/python3.11/dist-packages/vllm-0.11.0.dist-info/METADATA", "");
  const std::string root = std::string(dir / "").substr(0, std::string(dir / "").size() - 1);
  CHECK(machine_key(root, dir / "usr/bin") == "python: torch 2.0, vllm 0.11.0");
}

TEST_CASE("each key has a component of its own, which every name may have") {
  CHECK(key_component("a") == "key-ca978112ca1bbdca");
  CHECK(key_component("a") != key_component("b"));
  CHECK(weft::check_model_name("caches/inductor/" + key_component("")).ok());
}
