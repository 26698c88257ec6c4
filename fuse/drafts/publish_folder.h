// The folder of one publish, STORE/drafts/publishing/<id>. Its files are this process's, and nobody else can reach
// them. The draft lies in `held`, a directory of the user's own: what he may do in it (his import can lead him there)
// concerns his draft alone. Inside fuse/drafts only.
#pragma once

#include <optional>
#include <string>

#include "base/json_value.h"
#include "fuse/drafts/publisher.h"
#include "os/sys.h"

namespace weft {

inline constexpr char kHeld[] = "held";
inline constexpr char kContent[] = "content";  // in it
inline constexpr char kOrder[] = "order";
inline constexpr char kLock[] = "lock";
inline constexpr char kAnswer[] = "answer";  // what the import printed

// The name of the folder: hexadecimal. The numbers of requests begin anew with each mount.
std::string folder_name(std::uint64_t request, const std::string& mount = {});
int write_text(int folder, const char* name, const std::string& text);
Result<std::string> read_text(int folder, const char* name);
// The import's answer; nothing if it ended before it had written all of it.
std::optional<JsonValue> said_in(int folder);
bool is_published(int folder);
// A new server reads this to go on with a publish that another server began.
std::string encode(const PublishOrder& order);
// Writes a file for the owner of `directory`, whose file it is. A file or a link of this name goes first: it may lead
// to a file of the store. Returns no descriptor if that fails.
Fd leave_note(int directory, const char* name, mode_t mode, const std::string& text);

Result<PublishOrder> decode(const std::string& text);
// That of a folder. Errc::permission: another user wrote it.
Result<PublishOrder> order_in(int folder);
// Files that became packs and are none any more are the user's again. Only root gives files away.
void give_back(int directory, const PublishOrder& order, uid_t owner_of_packs);

struct PublishFolder {
  Fd fd;
  Fd held;
  Fd lock;            // of the file that the import has locked while it runs
  pid_t child = 0;    // 0: of an import that an earlier server began
  bool over = false;  // an earlier server has published the draft
  std::string name;

  // Opens what is there of the folder `name`, a directory in `publishing`. 0, or an errno with a minus sign.
  int open(int publishing);
  // `held`, and with it the draft, become the user's. The same answers.
  int make_held(const UserIds& user);
  int open_content(Fd& content) const;
  // Has the draft moved in?
  bool holds(const PublishOrder& order) const;
  // Has the import ended? One that was stopped is killed.
  bool ended() const;
};

}  // namespace weft
