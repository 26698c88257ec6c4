// scale_fill SHAPE STORE COUNT   publishes COUNT versions as `weft import` does
//   models   m0000001@1 …: one model per version; two tensors, one of them common to all versions
//   chain    chain@1 …: each version is the child of the previous one; two tensors, one of them common to all
//   second   second@1 …: the same in another model, with other tensors
//   fan      base@1 with 100 tensors; ft/t0000001@1 …: its children, each with 3 other tensors
// Each version has the metric loss, between 0 and 1. Creates the store if it does not exist.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/core.h>

#include "base/text.h"
#include "model/safetensors_file.h"
#include "weft/programs/operations.h"

namespace {

using namespace weft;

constexpr std::uint64_t kTensorBytes = 64;
constexpr std::uint64_t kFanTensors = 100;
constexpr std::uint64_t kFanChanged = 3;
constexpr std::uint64_t kFresh = 1'000'000;  // first seed that is not in a base

// The seeds of the version's tensors.
struct Version {
  std::string model;
  std::vector<std::string> parents;
  std::vector<std::uint64_t> seeds;
};

std::vector<std::uint64_t> fan_seeds(std::uint64_t number) {
  std::vector<std::uint64_t> seeds(kFanTensors);
  for (std::uint64_t i = 0; i < kFanTensors; ++i) seeds[i] = i;
  for (std::uint64_t i = 0; number > 0 && i < kFanChanged; ++i)
    seeds[(number * 31 + i) % kFanTensors] = kFresh + number * kFanChanged + i;
  return seeds;
}

Version version_of(const std::string& shape, std::uint64_t number) {
  if (shape == "models") return {fmt::format("m{:07}", number), {}, {0, kFresh + number}};
  if (shape == "fan") return {fmt::format("ft/t{:07}", number), {"base@1"}, fan_seeds(number)};
  const std::uint64_t own = shape == "second" ? 1'000 * kFresh : kFresh;
  std::vector<std::string> parents;
  if (number > 1) parents.push_back(fmt::format("{}@{}", shape, number - 1));
  return {shape, std::move(parents), {own, own + number}};
}

Status write_source(const std::string& path, const std::vector<std::uint64_t>& seeds) {
  std::vector<PlacedTensor> tensors;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    PlacedTensor& one = tensors.emplace_back();
    one.tensor = {fmt::format("layers.{}.w{}", i / 10, i % 10), DType::f32, {kTensorBytes / 4}, kNoExtent, ""};
    one.extent.id.length = kTensorBytes;
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << lay_out_safetensors("model.safetensors", tensors, {}).header;
  for (const std::uint64_t seed : seeds) {  // in the order of the layout: at most 100 names of one type
    std::mt19937_64 random(seed);
    for (std::uint64_t word = 0; word < kTensorBytes / 8; ++word) {
      const std::uint64_t value = random();
      out.write(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  return out.flush() ? Status{} : Status{Error{Errc::io, path + ": cannot be written"}};
}

Status publish(Store& store, const std::string& source, const Version& version, std::uint64_t number) {
  WEFT_CHECK(write_source(source, version.seeds));
  ImportOptions options;
  options.paths = {source};
  options.name = version.model;
  options.parents = version.parents;
  options.find_parent = std::nullopt;
  options.message = fmt::format("step {}", number);
  options.metrics = {{"loss", fmt::format("0.{:06}", number * 7919 % 1'000'000)}};
  WEFT_TRY(PreparedImport prepared, prepare_import(options, store.path(), no_progress()));
  WEFT_CHECK(run_import(store, no_resolver(), std::move(prepared), no_progress()));
  return {};
}

Status fill(const std::string& shape, const std::string& path, std::uint64_t count) {
  if (!std::filesystem::exists(path)) WEFT_CHECK(Store::create(path, {}));
  OpenOptions options;
  options.write = true;
  options.decode = content_decoder();
  WEFT_TRY(const auto store, Store::open(path, options));
  const std::string source = path + ".safetensors";
  if (shape == "fan") WEFT_CHECK(publish(*store, source, {"base", {}, fan_seeds(0)}, 0));
  for (std::uint64_t number = 1; number <= count; ++number)
    WEFT_CHECK(publish(*store, source, version_of(shape, number), number));
  std::filesystem::remove(source);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string shape = argc == 4 ? argv[1] : "";
  Status filled = Error{Errc::invalid, "usage: scale_fill models|chain|second|fan STORE COUNT"};
  if (shape == "models" || shape == "chain" || shape == "second" || shape == "fan")
    filled = fill(shape, argv[2], parse_u64(argv[3]).value_or(0));
  if (filled.ok()) return 0;
  std::fprintf(stderr, "%s\n", filled.error().message.c_str());
  return 1;
}
