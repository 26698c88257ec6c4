// Directories of new/ whose subdirectories are published by themselves, while a training writes them. `.weft.json` in
// such a directory says which, and when: {"model": "org/m", "each": "checkpoint-*", "when": "trainer_state.json"}.
//
// A subdirectory is complete when its file `when` is there and nobody has any file of it open for writing. Then its
// files become a version, and stay where they are: readers, a training that resumes, and the removal of old checkpoints
// go on. kDraftPublishedFile in it names the version, and has the time of the file `when`: if that is written again,
// the next version follows. If a publish fails, kDraftErrorFile says why.
//
// One thread looks for checkpoints that are complete, first of all through the whole tree for what a server before has
// left, and links their files into folders. Another one publishes these, one after the other. The first one also puts
// back what other publishes have left, now and then.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>

#include "fuse/drafts/draft_tree.h"
#include "fuse/drafts/publish_folder.h"
#include "fuse/drafts/publisher.h"

namespace weft {

// Any thread.
class Checkpoints {
 public:
  // Both outlive this.
  Checkpoints(DraftTree& tree, DraftPublisher& publisher) : tree_(tree), publisher_(publisher) {}
  ~Checkpoints() { stop(); }
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  void start();
  void stop();  // a publish that runs is given up
  // Something in this directory was written and closed, or came there.
  void changed(Ino dir);
  // Before something in this directory is removed: waits for the look that changed() has asked for.
  void wait_for_look(Ino dir);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Job {
    PublishOrder order;
    PublishFolder folder;
  };
  struct Training {  // a directory, and what its .weft.json says
    Ino ino = 0;
    Fd fd;
    DraftFacts facts;
    uid_t owner = 0;  // of the file
  };

  void look_on();
  void publish_on();
  bool wanted(Ino dir);
  bool is_in_training(Ino dir);
  bool goes_on();
  void look_below(Ino dir, unsigned depth);
  void look(Ino dir);
  bool open_training(Ino dir, Training& training);
  void consider(const Training& training, const DraftFound& checkpoint, const std::string& name);
  bool complete(const Training& training, int checkpoint, std::uint64_t& written_ns) const;
  void take(const Training& training, const DraftFound& checkpoint, int fd, std::uint64_t written_ns);
  void add(Job job);
  void look_again(Ino dir, std::chrono::seconds after);

  DraftTree& tree_;
  DraftPublisher& publisher_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::map<Ino, Time> due_;  // guarded by mutex_; directories to look at, and when
  Ino looking_at_ = 0;       // guarded by mutex_
  std::deque<Job> jobs_;     // guarded by mutex_
  bool stop_ = false;        // guarded by mutex_
  bool found_busy_ = false;  // of looks_ alone; one checkpoint at least, in this look: then it waits for no other
  std::set<Ino> refused_;    // of looks_ alone; directories whose .weft.json was malformed at the last look
  std::thread looks_, publishes_;
};

}  // namespace weft
