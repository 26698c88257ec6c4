// A store driven by hand: contents are numbers, a manifest is a line of text, and the test writes the packs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/store_impl.h"
#include "testing.h"

namespace weft::testing {

// Files of a version, each a list of contents. The content `n` has 1000 + n bytes.
using Files = std::vector<std::vector<unsigned>>;

std::vector<std::byte> content_bytes(unsigned n);
ContentId content_id(unsigned n);
VersionContent make_content(const Files& files);  // one view per distinct extent, two links each
std::vector<std::byte> manifest_of(const Files& files);
Result<VersionContent> decode(std::span<const std::byte> manifest);

OpenOptions write_options();
std::unique_ptr<StoreImpl> open_store(const std::string& path, const OpenOptions& options = write_options(),
                                      CommitHooks hooks = {});

struct PublishArgs {
  std::vector<ParentRef> parents;
  std::vector<std::string> tags;
  std::vector<std::string> elsewhere = {};
  std::string message = "made by a test";
  std::string source_commit = {};
};
// Publishes without an import: the packs of these blobs are in place.
Result<PublishOutcome> publish_blobs(StoreParts& store, const PublishRequest& request,
                                     const std::vector<NewBlob>& blobs);
Result<PublishOutcome> publish(StoreParts& store, std::string_view model, const Files& files,
                               const PublishArgs& args = {});
Result<PublishOutcome> publish(StoreImpl& store, std::string_view model, const Files& files,
                               const PublishArgs& args = {});
PublishOutcome must_publish(StoreImpl& store, std::string_view model, const Files& files, const PublishArgs& args = {});

// Makes an assembled file of these contents in this order.
void assemble(const std::string& store_path, const std::vector<unsigned>& contents, PackId id);

// Returns all that a snapshot shows, as text. `local`: includes facts about removed versions that last until gc.
std::string dump(Store& store, bool local = true);

bool readable(const CommitWatch& watch);  // True after a commit

// Runs `body` in a child process and returns its wait status. An exception or false makes it exit with 1.
int in_child(const std::function<bool()>& body);
bool exited(int status, int code = 0);

// Makes a private mount namespace with a tmpfs of `bytes` on `path`. For a child process of root.
bool mount_tmpfs(const std::string& path, std::uint64_t bytes);

// A store in a temporary directory.
struct TestStore {
  TestStore();
  TempDir dir;
  std::string path;
};

}  // namespace weft::testing
