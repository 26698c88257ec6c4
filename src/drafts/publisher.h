// Publishes a draft on a rename: `mv new/org/m new/org/m@prod`.
//
// The draft moves to STORE/drafts/publishing/<id>/content, where no other user can reach it. `weft import` publishes it
// like any directory, with the rights of the renaming user, and through the daemon if there is one. If that fails, the
// draft moves back. The error is in its file .weft.error, or in NAME.weft.error beside a draft that is a file.
//
// The id consists of the number of the kernel's request that publishes and the mount's id, and the import outlives a
// killed server. The kernel resends the request to the next server, which waits for the same import and returns its
// answer: so no rename publishes twice. A folder whose request never comes again is put back later, once its import has
// ended. The states of a publish are a table in publish_folder.h. Any thread.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_fields.h"
#include "drafts/draft_check.h"
#include "drafts/draft_tree.h"
#include "weft/result.h"
#include "weft/store/publish.h"

namespace weft {

// "NAME@TAG", or "NAME@" for no tag.
struct PublishName {
  std::string name;
  std::string tag;
};
std::optional<PublishName> publish_name(std::string_view entry);

// A checkpoint: a draft that stays where it is (checkpoints.h). The published files are hard links to its files.
struct StayingDraft {
  Ino ino = 0;                   // 0: the draft moves
  std::uint64_t written_ns = 0;  // mtime of the file written last; kDraftPublishedFile gets it
};

struct PublishOrder {
  std::uint64_t request = 0;   // the kernel's number of the request that publishes, never reused
  std::uint32_t thread = 0;    // the thread that renames; 0: unknown, or none
  std::uint64_t answered = 0;  // the RENAME that the publish answers; 0: the next one of this thread
  UserIds user;
  Ino dir = 0;        // directory of the draft
  Ino to = 0;         // directory of its new name; 0: none in new/
  std::string name;   // in `dir`
  bool file = false;  // the draft is a file, not a directory; set by publish()
  std::string model;
  std::string tag;
  StayingDraft stays;
};

void fields(JsonFields& f, PublishOrder& m);  // the file `order` of a folder

struct PublisherOptions {
  std::string store;
  std::string program;  // weft(1)
  bool trust_store = false;
  std::string durability = {};  // of versions whose facts name none; "": the default of import
  std::string mount = {};       // the mount's id, unique
};

struct ImportOptions;
struct PublishFolder;

struct BegunPublish {
  PublishOrder order;  // without the user's groups
  bool published = false;
};

class DraftPublisher {
 public:
  using Clock = std::chrono::steady_clock;

  DraftPublisher(DraftTree& tree, PublisherOptions options) : tree_(tree), options_(std::move(options)) {}

  // Publishes a draft. An error of the import is in the draft's kDraftErrorFile too.
  Status publish(PublishOrder order, const GoesOn& goes_on);
  // Notes which RENAME gets the answer of a publish of a thread. Call it before the reply: a later server must not
  // answer the thread's next rename with it.
  Status answer(PublishOrder order, std::uint64_t request);
  // Returns the publishes of threads that earlier servers of this mount began, and that are not put back.
  std::vector<BegunPublish> begun_before() const;

  // For a draft that stays, in `order.dir`. Its number replaces a request number. Links its files into a folder, so
  // that later changes of the draft do not matter. A draft without facts gets those of `order.dir`. Errc::busy: a file
  // is open for writing, or the draft is in such a folder already. Errc::permission: a directory in it belongs to
  // another user. `waits`: waits a short while for writers.
  Status take_staying(PublishOrder& order, PublishFolder& folder, bool waits);
  // Publishes these links, once. On success kDraftPublishedFile in the draft names the version. The folder of a
  // cancelled publish stays for a later server.
  Status publish_staying(const PublishOrder& order, PublishFolder& folder, const GoesOn& goes_on);
  // Returns the folders that earlier servers left.
  std::vector<std::pair<PublishOrder, PublishFolder>> taken_before();

  // Puts back the drafts that earlier servers left. Skips checkpoints, folders in use by another server, and those
  // whose request the kernel may still resend at `now`: a folder has to be without a server in each call for two
  // minutes. One thread at a time.
  void recover(Clock::time_point now);

 private:
  Status take(PublishOrder& order, PublishFolder& folder);
  Result<Fd> open_publishing() const;
  void each_folder(const std::function<void(PublishFolder& folder)>& visit) const;
  Result<bool> open_folder(const UserIds& user, PublishFolder& folder);  // true: it is new
  Status move_in(PublishOrder& order, const PublishFolder& folder);
  Result<Fd> find_draft(PublishOrder& order);
  Status link_in(const PublishOrder& order, const PublishFolder& folder);
  void note_published(const StayingDraft& draft, const PublishFolder& folder);
  void finish_staying(const PublishOrder& order, const PublishFolder& folder);
  Status run(const PublishOrder& order, PublishFolder& folder, const GoesOn& goes_on);
  Result<ImportOptions> check(const PublishOrder& order, int content, const GoesOn& goes_on) const;
  Status start(const PublishOrder& order, PublishFolder& folder, int content, ImportOptions options);
  void finish(const PublishOrder& order, const PublishFolder& folder);
  Status put_back(const PublishOrder& order, PublishFolder& folder);
  void recover_one(PublishFolder& folder);
  Status forget(const PublishFolder& folder);

  DraftTree& tree_;
  const PublisherOptions options_;
  std::map<std::string, Clock::time_point> abandoned_;  // for recover(): folders without a server, and since when
};

}  // namespace weft
