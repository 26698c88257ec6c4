// Publishes the subdirectories of a directory in new/ while a training writes them. `.weft.json` in that directory says
// which ones, and when: {"model": "org/m", "each": "checkpoint-*", "when": "trainer_state.json"}.
//
// A subdirectory is complete when its file `when` exists and no file in it is open for writing. Its files then become a
// version and stay where they are: readers, a resumed training and the removal of old checkpoints are not disturbed.
// kDraftPublishedFile in it names the version, and has the mtime of the file `when`: if that file is written again, the
// next version follows. If a publish fails, kDraftErrorFile says why.
//
// One thread looks for complete checkpoints, starting with the whole tree for those that an earlier server left, and
// links their files into folders. Another thread publishes these folders. Both serve the users in turn, so that one
// user's checkpoints do not wait behind all of another's. The first thread also calls DraftPublisher::recover() from
// time to time.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/user_shares.h"
#include "base/worker.h"
#include "drafts/draft_facts.h"
#include "drafts/draft_tree.h"
#include "drafts/publish_folder.h"
#include "drafts/publisher.h"

namespace weft {

// Any thread.
class Checkpoints {
 public:
  // Both outlive this.
  Checkpoints(DraftTree& tree, DraftPublisher& publisher) : tree_(tree), publisher_(publisher) {}
  ~Checkpoints() { stop(); }

  void start();
  void stop();  // cancels a running publish
  // Call when the user has written and closed a file in this directory, or moved one there.
  void changed(Ino dir, uid_t user);
  // Call before an entry of this directory is removed: waits for the scan that changed() has requested.
  void wait_for_scan(Ino dir);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Due {
    Time when;
    uid_t user = 0;  // who wrote there
  };
  struct Job {
    PublishOrder order;
    PublishFolder folder;
  };
  struct Training {  // a directory and its .weft.json
    Ino ino = 0;
    EachCheckpoint each;
    uid_t owner = 0;  // of the file
  };

  void find_unfinished();
  Worker::Pause scan_due();
  Worker::Pause publish_next();
  bool wanted(Ino dir) WEFT_REQUIRES(mutex_);
  bool is_in_training(Ino dir);
  void scan(Ino dir);
  std::vector<std::pair<std::string, DraftFound>> entries_of(Ino dir);
  std::optional<Training> open_training(Ino dir);
  void consider(const Training& training, const DraftFound& checkpoint, const std::string& name);
  static std::optional<std::uint64_t> complete_since(const Training& training, int checkpoint);
  void take(const Training& training, const DraftFound& checkpoint, int fd, std::uint64_t written_ns);
  void add(Job job);
  void scan_again(Ino dir, uid_t user, std::chrono::seconds after);
  std::optional<Ino> next_due(Time now) WEFT_REQUIRES(mutex_);

  DraftTree& tree_;
  DraftPublisher& publisher_;
  Mutex mutex_;
  Condition scanned_;
  std::map<Ino, Due> due_ WEFT_GUARDED_BY(mutex_);  // directories to scan
  Ino scanning_ WEFT_GUARDED_BY(mutex_) = 0;
  UserTurns<Job> jobs_ WEFT_GUARDED_BY(mutex_);
  std::optional<uid_t> scanned_for_ WEFT_GUARDED_BY(mutex_);  // the user of the last scan
  // For scanner_ only:
  bool begun_ = false;
  Time recovers_{};          // when it calls recover() again
  bool found_busy_ = false;  // a checkpoint of this scan was busy: the scan waits for no other one
  std::set<Ino> refused_;    // directories whose .weft.json was malformed at the last scan
  Worker scanner_{"checkpoints"}, publishes_{"publishing checkpoints"};
};

}  // namespace weft
