// A store with two models, and a second store that takes bundles of it over.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "diskformat/bundle_list.h"
#include "fakes/node_fixture.h"
#include "weft/programs/bundle.h"
#include "weft/store/fsck.h"
#include "weft/store/snapshot.h"

namespace weft::testing {

struct TwoSites {
  Fixture from, to;
  TempDir place;

  // bert@1 and bert@2, which share most bytes, and org/other@1, whose parent is bert@2.
  TwoSites() {
    version("bert", 1, {});
    version("bert", 2, {"bert@1"});
    version("org/other", 3, {"bert@2"});
    must(from.store->set_tag("bert", "prod", 2));
    must(from.store->set_tag("org/other", "best", 1));
  }

  void version(const std::string& name, std::uint64_t seed, std::vector<std::string> parents) const {
    from.publish_child(name, seed, std::move(parents));
  }

  std::string file() const { return place / "bundle.weft"; }

  Result<BundleReport> create(BundleOptions options, const std::string& path,
                              Progress& progress = no_progress()) const {
    return create_bundle(*from.store, no_resolver(), options, path, progress);
  }
  std::string created(BundleOptions options, const std::string& name = "bundle.weft") const {
    must(create(std::move(options), place / name));
    return place / name;
  }

  Result<BundleImportReport> import(const std::string& path, const BundleImportOptions& options = {},
                                    Progress& progress = no_progress()) {
    Store& store = *to.store;
    const BundleTarget target{
        store, {}, [&store](auto model, auto tag, std::uint64_t number) { return store.set_tag(model, tag, number); }};
    WEFT_TRY(const BundleFiles files, bundle_at(path));
    return import_bundle(target, files, options, progress);
  }

  static std::map<std::string, std::string> exported(const Fixture& site, const std::string& spec) {
    TempDir out;
    must(export_version(*site.store, no_resolver(), spec, out / "files", no_progress()));
    std::map<std::string, std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(out / "files"))
      if (!entry.is_directory())
        files[std::filesystem::relative(entry.path(), out / "files")] = read_text(entry.path());
    return files;
  }

  void check_sound() const {
    const auto report = must(to.store->fsck({}, content_decoder(), no_progress()));
    CHECK_MESSAGE(report.clean(), (report.clean() ? "" : report.problems[0]));
  }
};

}  // namespace weft::testing
