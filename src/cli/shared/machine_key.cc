#include "cli/shared/machine_key.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/sha256.h"
#include "base/text.h"
#include "os/programs.h"
#include "os/sys.h"

namespace weft {
namespace {

constexpr std::uint64_t kKernelFileMax = 16U << 20U;  // /proc/cpuinfo has about 1.5 KiB for each processor
constexpr std::size_t kKeyDigits = 16;
constexpr std::array<std::string_view, 3> kPackages{"torch", "triton", "vllm"};
// The names of x86 flags that choose instructions begin so. Other flags depend on the kernel and the hypervisor.
constexpr std::array<std::string_view, 6> kVectorFlags{"amx", "avx", "bmi", "f16c", "fma", "sse4"};

// Returns the value of the first line "NAME : value"; "" if there is none.
std::string_view value_of(std::string_view text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || trimmed(line.substr(0, colon), " \t") != name) continue;
    return trimmed(line.substr(colon + 1), " \t");
  }
  return {};
}

bool is_vector_flag(std::string_view flag) {
  return std::ranges::any_of(kVectorFlags, [flag](std::string_view begin) { return flag.starts_with(begin); });
}

std::string kernel_text(const std::string& path) {
  auto text = read_kernel_file(path, kKernelFileMax);
  return text.ok() ? std::move(text).value() : std::string();
}

std::vector<std::string> names_in(const std::string& directory) {
  auto names = list_directory(directory);
  return names.ok() ? std::move(names).value() : std::vector<std::string>();
}

// Returns "NVIDIA H200, driver 550.54.15": each model once. "" without a driver.
std::string gpu_facts(const std::string& root) {
  const std::string driver = driver_version(kernel_text(root + "/proc/driver/nvidia/version"));
  if (driver.empty()) return {};
  const std::string gpus = root + "/proc/driver/nvidia/gpus";
  std::set<std::string> models;
  for (const std::string& gpu : names_in(gpus)) {
    const std::string text = kernel_text(fmt::format("{}/{}/information", gpus, gpu));
    if (const std::string_view model = value_of(text, "Model"); !model.empty()) models.emplace(model);
  }
  std::string facts;
  for (const std::string& model : models) facts += model + ", ";
  return fmt::format("{}driver {}", facts, driver);
}

// Returns the directories of a Python's packages that exist: those of its prefix, and /usr/local for the system's.
std::vector<std::string> package_directories(const std::string& root, const std::string& python) {
  const std::string bin = python.substr(0, python.rfind('/'));
  const std::string prefix = bin.substr(0, bin.rfind('/'));
  std::vector<std::string> prefixes{prefix};
  if (prefix == root + "/usr" || prefix == root) prefixes = {root + "/usr/local", root + "/usr"};
  std::vector<std::string> out;
  for (const std::string& one : prefixes)
    for (const std::string_view lib : {"lib", "lib64"})
      for (const std::string& name : names_in(fmt::format("{}/{}", one, lib)))
        if (name.starts_with("python3"))
          for (const std::string_view packages : {"site-packages", "dist-packages"})
            out.push_back(fmt::format("{}/{}/{}/{}", one, lib, name, packages));
  return out;
}

// Returns "torch 2.9.0, triton 3.5.0".
std::string package_facts(const std::string& root, const std::string& python) {
  constexpr std::string_view kSuffix = ".dist-info";
  std::set<std::string> found;
  for (const std::string& directory : package_directories(root, python))
    for (const std::string& name : names_in(directory)) {
      const auto dash = name.find('-');
      if (dash == std::string::npos || !name.ends_with(kSuffix)) continue;
      const std::string package = name.substr(0, dash);
      if (std::ranges::find(kPackages, package) == kPackages.end()) continue;
      found.insert(fmt::format("{} {}", package, name.substr(dash + 1, name.size() - dash - 1 - kSuffix.size())));
    }
  std::string facts;
  for (const std::string& one : found) facts += (facts.empty() ? "" : ", ") + one;
  return facts;
}

}  // namespace

std::string processor_facts(std::string_view cpuinfo) {
  std::string_view model = value_of(cpuinfo, "model name");
  const std::string_view flags = value_of(cpuinfo, "flags");
  if (model.empty() && flags.empty()) {  // ARM
    model = value_of(cpuinfo, "CPU part");
    const std::string_view features = value_of(cpuinfo, "Features");
    return model.empty() ? std::string(features) : fmt::format("part {} {}", model, features);
  }
  std::string facts(model);
  for (const std::string_view flag : split(flags, ' '))
    if (is_vector_flag(flag)) facts += fmt::format(" {}", flag);
  return facts;
}

std::string driver_version(std::string_view text) {
  for (const std::string_view word : split(text.substr(0, text.find('\n')), ' '))
    if (word.find('.') != std::string_view::npos && word.find_first_not_of("0123456789.") == std::string_view::npos)
      return std::string(word);
  return {};
}

std::string machine_key(const std::string& root, const std::string& path) {
  const auto python = find_program("python3", "", path);
  std::string key;
  for (const auto& [name, facts] :
       {std::pair("cpu", processor_facts(kernel_text(root + "/proc/cpuinfo"))), std::pair("gpu", gpu_facts(root)),
        std::pair("python", python ? package_facts(root, *python) : std::string())})
    if (!facts.empty()) key += fmt::format("{}{}: {}", key.empty() ? "" : "; ", name, facts);
  return key;
}

std::string key_component(std::string_view key) {
  return "key-" + to_hex(sha256(std::as_bytes(std::span(key)))).substr(0, kKeyDigits);
}

}  // namespace weft
