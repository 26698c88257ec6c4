// The folder of one publish, STORE/drafts/publishing/<id>. Its files belong to this process, and no other user can
// reach them. The draft is in `held`, a directory of the publishing user, who can reach it through the import: changes
// there affect that user's draft only. For use inside src/drafts.
//
// Its directories, locks and files are the state of the publish, which outlives the server. In this order:
//
//   state      order  held/content  .weft.json  lock  answer           a server that finds it
//   empty      -      -             -           free  -                moves the draft in; recover() deletes the folder
//   ordered    yes    -             -           free  -                as empty: the draft is still in new/
//   held       yes    draft         -           free  -                checks the draft and starts the import
//   begun      yes    draft         yes         held  none, or a part  waits for the import, with whatever lock it has
//   dead       yes    draft         yes         free  none, or a part  starts the import again
//   in doubt   yes    draft         yes         free  {"error", …}     starts the import again: weftd died under it
//   failed     yes    draft         yes         free  {"error", …}     moves facts and draft back, deletes the folder
//   published  yes    - or draft    yes         free  {"version", …}   answers a request that the kernel sends again;
//                                                                      recover() deletes the folder
//
// `.weft.json` exists only if the draft had one. `order` is written before a draft moves in, and after the links of a
// checkpoint are complete: a checkpoint's folder without `order` is deleted. The guard of the import (os/programs.h)
// holds `lock`; ended() takes it, so that no other server starts a second import. A server holds a shared lock of the
// file `servers` while it works in the folder: recover() leaves such a folder alone, and any folder that has not been
// without a server for two minutes. Only the mount's user can open these files.
#pragma once

#include <optional>
#include <string>

#include "base/json_value.h"
#include "drafts/publisher.h"
#include "os/sys.h"

namespace weft {

inline constexpr char kHeld[] = "held";
inline constexpr char kContent[] = "content";  // in kHeld
inline constexpr char kOrder[] = "order";
inline constexpr char kLock[] = "lock";        // locked by the guard of the import
inline constexpr char kServers[] = "servers";  // locked by the servers that work in the folder
inline constexpr char kAnswer[] = "answer";    // output of the import

// Returns the folder's name, in hexadecimal. It includes the mount's id: request numbers restart with each mount.
std::string folder_name(std::uint64_t request, const std::string& mount = {});
// Returns the import's answer; nothing if the import ended before it had written all of it.
std::optional<JsonValue> said_in(int folder);
bool is_published(int folder);
// Writes the order, with which a later server continues the publish.
Status write_order(int folder, const PublishOrder& order);
// Reads the order of a folder. Errc::permission: another user wrote it.
Result<PublishOrder> order_in(int folder);
// Writes a file that belongs to the owner of `directory`. It appears with its text, and replaces a file or link of this
// name: a link may lead to a file of the store.
Result<Fd> leave_note(int directory, const char* name, mode_t mode, const std::string& text);

struct PublishFolder {
  Fd fd;
  Fd held;            // invalid: the folder has no `held` yet
  Fd lock;            // of kLock
  Fd servers;         // of kServers
  pid_t child = 0;    // 0: an earlier server started the import
  bool over = false;  // an earlier server has published the draft
  std::string name;

  // Opens the existing parts of the folder `name` in the directory `publishing`.
  Status open(int publishing);
  // Creates `held` and gives it, with the draft, to the user.
  Status make_held(const UserIds& user);
  Result<Fd> open_content() const;
  // Moves the draft's facts back into it, if the folder has them.
  void restore_facts(int content) const;
  // True if the draft is in this folder.
  bool holds(const PublishOrder& order) const;
  // True if the import has ended. Kills an import that was stopped by a signal.
  bool ended() const;
};

}  // namespace weft
