// Makes stores for the lineage bench:
//   lineage_tree chain STORE DEPTH      publishes a chain of DEPTH versions of "chain", as an import does
//   lineage_tree manifests STORE        publishes "big@1" and "big@2": 300 tensors, 7 billion parameters of BF16, 30
//                                       tensors changed. Manifests, records and index are real. The index has
//                                       places for the bytes, which were never written and are never read.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include <fmt/core.h>

#include "base/sha256.h"
#include "base/text.h"
#include "model/safetensors_file.h"
#include "store/store_impl.h"
#include "weft/programs/operations.h"

namespace {

using namespace weft;

constexpr std::uint64_t kTensors = 300;
constexpr std::uint64_t kChanged = 30;
constexpr std::uint64_t kRows = 5128;  // × 4,550 × 300 is 7.0 billion
constexpr std::uint64_t kColumns = 4550;

OpenOptions writing() {
  OpenOptions options;
  options.write = true;
  options.decode = content_decoder();
  return options;
}

std::string tensor_name(std::uint64_t i) {
  return fmt::format("model.layers.{}.{}.weight", i / 10, i % 10);
}

// Writes a model of 8 tensors. Each version changes another one of them.
Status write_link(const std::string& path, std::uint64_t number) {
  std::vector<PlacedTensor> tensors;
  for (std::uint64_t i = 0; i < 8; ++i) {
    PlacedTensor& one = tensors.emplace_back();
    one.tensor = {fmt::format("t{}", i), DType::u8, {64}, kNoExtent, ""};
    one.extent.id.length = 64;
  }
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << lay_out_safetensors("m.safetensors", tensors, {}).header;
  for (std::uint64_t i = 0; i < 8; ++i) {
    std::mt19937_64 random(i == number % 8 ? number + 100 : i);
    for (int word = 0; word < 8; ++word) {
      const std::uint64_t value = random();
      out.write(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  return out.flush() ? Status{} : Status{Error{Errc::io, path + ": cannot be written"}};
}

Status make_chain(const std::string& path, std::uint64_t depth) {
  WEFT_CHECK(Store::create(path, {}));
  WEFT_TRY(const auto store, Store::open(path, writing()));
  ImportOptions options;
  options.paths = {path + ".safetensors"};
  options.name = "chain";
  options.message = "one tensor of eight changed";
  for (std::uint64_t number = 1; number <= depth; ++number) {
    WEFT_CHECK(write_link(options.paths.front(), number));
    WEFT_TRY(PreparedImport prepared, prepare_import(options, store->path(), no_progress()));
    WEFT_CHECK(run_import(*store, no_resolver(), std::move(prepared), no_progress()));
    options.parents = {"chain"};
  }
  std::filesystem::remove(options.paths.front());
  return {};
}

ContentId content(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  ContentId id{kRows * kColumns * 2, {}};
  for (std::uint8_t& byte : id.root.bytes) byte = static_cast<std::uint8_t>(random());
  return id;
}

Manifest big(std::uint64_t changed) {
  std::vector<PlacedTensor> tensors;
  for (std::uint64_t i = 0; i < kTensors; ++i)
    tensors.push_back(
        {{tensor_name(i), DType::bf16, {kRows, kColumns}, kNoExtent, ""}, {0, content(i < changed ? i + 1000 : i)}});
  SafetensorsFile file = lay_out_safetensors("model.safetensors", tensors, {{"format", "pt"}});
  file.file.extents.front().id.root.bytes[0] = 1;
  return {{std::move(file.file)}};
}

Status publish(StoreImpl& store, const Manifest& manifest) {
  {
    WEFT_TRY(auto writer, store.parts().blobs.write());
    std::uint64_t place = 0;
    for (const Extent& extent : manifest.files[0].extents) {
      WEFT_TRY(const auto known, writer->find(extent.id));
      if (!known) WEFT_CHECK(writer->put(extent.id, BlobPlace{1, place}));
      place += extent.id.length;
    }
    WEFT_CHECK(writer->commit());
  }
  PublishRequest request;
  request.model = "big";
  WEFT_TRY(request.manifest, encode_manifest(manifest));
  WEFT_TRY(request.content, content_of(manifest));
  const Digest digest = sha256(request.manifest);
  const auto published = publish(store.parts(), request, digest, [&]() -> Result<Placed> {
    WEFT_TRY(WriterLock lock, store.parts().index.lock());
    WEFT_CHECK(store.parts().manifests.put(digest, request.manifest));
    return Placed{std::move(lock), {}};
  });
  return published.ok() ? Status{} : Status{Error{Errc::internal, "publish"}};
}

Status make_manifests(const std::string& path) {
  WEFT_CHECK(Store::create(path, {}));
  WEFT_TRY(const auto store, StoreImpl::open(path, writing()));
  WEFT_CHECK(publish(*store, big(0)));
  return publish(*store, big(kChanged));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  Status made = Error{Errc::invalid, "usage: lineage_tree chain STORE DEPTH | manifests STORE"};
  if (what == "chain" && argc == 4) made = make_chain(argv[2], parse_u64(argv[3]).value_or(0));
  if (what == "manifests" && argc == 3) made = make_manifests(argv[2]);
  if (made.ok()) return 0;
  std::fprintf(stderr, "%s\n", made.error().message.c_str());
  return 1;
}
