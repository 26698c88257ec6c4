// The rename that publishes a draft: `mv new/org/m new/org/m@prod`.
//
// The draft moves to STORE/drafts/publishing/<id>/content, where nobody else reaches it. `weft import` then publishes
// it as any other directory, with the rights of the user who renamed it and through the daemon if there is one. If that
// fails, the draft comes back to its place, and what was wrong stands in its file .weft.error, or in NAME.weft.error
// beside a draft that is a file.
//
// The id is the number of the kernel's request and that of the mount, and the import outlives a server that is killed.
// So the next server, which the kernel asks again, waits for the same import and gives its answer: no rename publishes
// twice. A folder that no request comes for is put back later, once its import has ended. Each call returns 0, or an
// errno with a minus sign. Any thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuse/drafts/caller.h"
#include "fuse/drafts/draft_facts.h"
#include "fuse/drafts/draft_tree.h"
#include "weft/result.h"

namespace weft {

// "NAME@TAG", or "NAME@" for no tag.
struct PublishName {
  std::string name;
  std::string tag;
};
std::optional<PublishName> publish_name(std::string_view entry);

// A draft that stays where it is: a checkpoint (checkpoints.h). Its files are links to those that are published.
struct StayingDraft {
  Ino ino = 0;                   // 0: the draft goes
  std::uint64_t written_ns = 0;  // of the file that was written last: kDraftPublishedFile gets this time
};

struct PublishOrder {
  std::uint64_t request = 0;  // the kernel's number, which it uses once
  UserIds user;
  Ino dir = 0;        // where the draft lies
  Ino to = 0;         // where its new name would lie; 0: in no directory of new/
  std::string name;   // in `dir`
  bool file = false;  // and no directory; publish() finds that out
  std::string model;
  std::string tag;
  StayingDraft stays;
};

struct PublisherOptions {
  std::string store;
  std::string program;  // weft(1)
  bool trust_store = false;
  std::string durability = {};  // of versions that do not say it themselves; "": as import
  std::string mount = {};       // no other mount has this id
};

struct PublishFolder;

class DraftPublisher {
 public:
  DraftPublisher(DraftTree& tree, PublisherOptions options) : tree_(tree), options_(std::move(options)) {}

  // `pause` is called some times a second while the import runs; false: the user does not want it any more.
  int publish(PublishOrder order, const std::function<bool()>& pause);

  // Of a draft that stays, in `order.dir`. Its number takes the place of a request's.
  // Links its files into a folder: what becomes of the draft from now on does not matter. If it has no facts of its
  // own, those of `order.dir` count. -EBUSY: somebody writes to it, or it is in another such folder. -EACCES: a
  // directory in it is another user's. `waits`: for a short while, that writers close it.
  int take_staying(PublishOrder& order, PublishFolder& folder, bool waits);
  // Publishes these links, once. On success kDraftPublishedFile in the draft names the version. If `pause` stops it,
  // the folder stays for a later server.
  int publish_staying(const PublishOrder& order, PublishFolder& folder, const std::function<bool()>& pause);
  // The folders that servers before have left.
  std::vector<std::pair<PublishOrder, PublishFolder>> taken_before();

  // Puts back what servers before left behind, but for drafts that stay, what another server has in work, and what the
  // kernel may still ask for at `now`.
  void recover(time_t now);

 private:
  int take(PublishOrder& order, PublishFolder& folder);
  int open_folder(const UserIds& user, PublishFolder& folder, bool& made);
  int move_in(PublishOrder& order, const PublishFolder& folder);
  int look_at(PublishOrder& order, Fd& dir);
  int link_in(const PublishOrder& order, const PublishFolder& folder);
  void note_published(const StayingDraft& draft, const PublishFolder& folder);
  void settle_staying(const PublishOrder& order, const PublishFolder& folder);
  int run(const PublishOrder& order, PublishFolder& folder, const std::function<bool()>& pause);
  int finish(const PublishOrder& order, PublishFolder& folder);
  int put_back(const PublishOrder& order, PublishFolder& folder);
  int forget(const PublishFolder& folder);

  DraftTree& tree_;
  const PublisherOptions options_;
};

}  // namespace weft
