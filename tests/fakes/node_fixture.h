// A store in a temporary directory, and helpers that publish into it.
#pragma once

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testing.h"
#include "weft/programs/operations.h"

namespace weft::testing {

// Calls a function of the test during an operation.
class HookProgress final : public Progress {
 public:
  std::function<void(std::string_view)> on_phase = [](std::string_view) {};
  bool cancel = false;
  std::uint64_t bytes_total = 0;
  std::atomic<std::uint64_t> bytes_done = 0;

  void total(std::uint64_t bytes) override { bytes_total = bytes; }
  void advance(std::uint64_t bytes) override { bytes_done += bytes; }
  void phase(std::string_view what) override { on_phase(what); }
  bool cancelled() const override { return cancel; }
};

// Imports into a store whose versions are all whole.
inline Result<ImportReport> import_paths(Store& store, const ImportOptions& options, Progress& progress) {
  WEFT_TRY(PreparedImport prepared, prepare_import(options, store.path(), progress));
  return run_import(store, no_resolver(), std::move(prepared), progress);
}

// Writes a small model: three tensors, a config in a directory, and an empty file. `seed` determines the first tensor
// only.
inline void write_model(const std::string& directory, std::uint64_t seed) {
  write_file(directory + "/model.safetensors",
             safetensors_file({{"encoder.0.weight", "F32", {64, 64}, random_bytes(16384, seed)},
                               {"encoder.1.weight", "F32", {64, 64}, random_bytes(16384, 1001)},
                               {"empty", "F32", {0, 4}, {}}}));
  write_file(directory + "/1_Pooling/config.json", "{\"dim\": 64}");
  write_file(directory + "/empty.txt", "");
}

struct Fixture {
  Fixture() {
    REQUIRE(Store::create(dir / "store").ok());
    OpenOptions options;
    options.write = true;
    options.decode = content_decoder();
    auto opened = Store::open(dir / "store", options);
    REQUIRE(opened.ok());
    store = std::move(opened).value();
  }

  Result<ImportReport> import(const std::vector<std::string>& paths, const std::string& name) {
    ImportOptions options;
    options.paths = paths;
    options.name = name;
    return import_paths(*store, options, no_progress());
  }

  // Publishes, and fails the test on an error.
  ImportReport publish(const std::vector<std::string>& paths, const std::string& name) {
    auto report = import(paths, name);
    if (!report.ok()) FAIL(report.error().message);
    return *report;
  }

  // Publishes a made model with a message, a metric and parents.
  VersionRow publish_child(const std::string& name, std::uint64_t seed, std::vector<std::string> parents) const {
    const std::string path = dir / ("source" + std::to_string(seed));
    write_model(path, seed);
    ImportOptions options;
    options.paths = {path};
    options.name = name;
    options.parents = std::move(parents);
    options.message = "the " + std::to_string(seed);
    options.metrics = {{"loss", "0." + std::to_string(seed)}};
    return must(import_paths(*store, options, no_progress())).outcome.version;
  }

  // Counters that a failed operation must leave unchanged.
  std::string state() const {
    auto snapshot = store->snapshot();
    REQUIRE(snapshot.ok());
    auto counts = store->counts();
    REQUIRE(counts.ok());
    return std::to_string((*snapshot)->sequence()) + " " + std::to_string(counts->models) + " " +
           std::to_string(counts->versions) + " " + std::to_string(counts->tags) + " " + std::to_string(counts->blobs) +
           " " + std::to_string(counts->packs);
  }

  Result<VersionRow> resolve(std::string_view spec) const {
    auto snapshot = store->snapshot();
    REQUIRE(snapshot.ok());
    return resolve_version(**snapshot, spec);
  }

  TempDir dir;
  std::unique_ptr<Store> store;
};

}  // namespace weft::testing
