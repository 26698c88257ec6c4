// The folder of one publish, STORE/drafts/publishing/<id>. Its files belong to this process, and no other user can
// reach them. The draft is in `held`, a directory of the publishing user, who can reach it through the import: changes
// there affect that user's draft only. For use inside fuse/drafts.
#pragma once

#include <optional>
#include <string>

#include "base/json_value.h"
#include "fuse/drafts/publisher.h"
#include "os/sys.h"

namespace weft {

inline constexpr char kHeld[] = "held";
inline constexpr char kContent[] = "content";  // in kHeld
inline constexpr char kOrder[] = "order";
inline constexpr char kLock[] = "lock";
inline constexpr char kAnswer[] = "answer";  // output of the import

// Returns the folder's name, in hexadecimal. It includes the mount's id: request numbers restart with each mount.
std::string folder_name(std::uint64_t request, const std::string& mount = {});
int write_text(int folder, const char* name, const std::string& text);
Result<std::string> read_text(int folder, const char* name);
// Returns the import's answer; nothing if the import ended before it had written all of it.
std::optional<JsonValue> said_in(int folder);
bool is_published(int folder);
// Serializes an order, with which a later server continues the publish.
std::string encode(const PublishOrder& order);
// Writes a file that belongs to the owner of `directory`. Deletes a file or link of this name first: it may lead to a
// file of the store. Returns an invalid descriptor on failure.
Fd leave_note(int directory, const char* name, mode_t mode, const std::string& text);

Result<PublishOrder> decode(const std::string& text);
// Reads the order of a folder. Errc::permission: another user wrote it.
Result<PublishOrder> order_in(int folder);
// Gives the user back those files that an import had turned into packs and that no version names. Does nothing unless
// this process is root.
void give_back(int directory, const PublishOrder& order, uid_t owner_of_packs);

struct PublishFolder {
  Fd fd;
  Fd held;
  Fd lock;            // of the file that the import locks while it runs
  pid_t child = 0;    // 0: an earlier server started the import
  bool over = false;  // an earlier server has published the draft
  std::string name;

  // Opens the existing parts of the folder `name` in the directory `publishing`. Returns 0 or a negative errno.
  int open(int publishing);
  // Creates `held` and gives it, with the draft, to the user. Returns 0 or a negative errno.
  int make_held(const UserIds& user);
  int open_content(Fd& content) const;
  // True if the draft is in this folder.
  bool holds(const PublishOrder& order) const;
  // True if the import has ended. Kills an import that was stopped by a signal.
  bool ended() const;
};

}  // namespace weft
