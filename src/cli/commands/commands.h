// Every subcommand, in the order that `weft --help` shows them.
#pragma once

#include <memory>
#include <vector>

#include "cli/shared/command.h"

namespace weft {

std::unique_ptr<Command> make_advise_command();
std::unique_ptr<Command> make_cache_command();
std::unique_ptr<Command> make_completion_command();
std::unique_ptr<Command> make_debug_command();
std::unique_ptr<Command> make_diff_command();
std::unique_ptr<Command> make_du_command();
std::unique_ptr<Command> make_evict_command();
std::unique_ptr<Command> make_export_command();
std::unique_ptr<Command> make_find_command();
std::unique_ptr<Command> make_fsck_command();
std::unique_ptr<Command> make_gc_command();
std::unique_ptr<Command> make_import_command();
std::unique_ptr<Command> make_info_command();
std::unique_ptr<Command> make_init_command();
std::unique_ptr<Command> make_lineage_command();
std::unique_ptr<Command> make_log_command();
std::unique_ptr<Command> make_ls_command();
std::unique_ptr<Command> make_match_command();
std::unique_ptr<Command> make_mount_command();
std::unique_ptr<Command> make_peers_command();
std::unique_ptr<Command> make_pin_command();
std::unique_ptr<Command> make_prefetch_command();
std::unique_ptr<Command> make_restore_command();
std::unique_ptr<Command> make_rm_command();
std::unique_ptr<Command> make_scrub_command();
std::unique_ptr<Command> make_stage_out_command();
std::unique_ptr<Command> make_status_command();
std::unique_ptr<Command> make_tag_command();
std::unique_ptr<Command> make_umount_command();
std::unique_ptr<Command> make_unpin_command();
std::unique_ptr<Command> make_wait_command();
std::unique_ptr<Command> make_watch_command();

std::vector<std::unique_ptr<Command>> all_commands();

}  // namespace weft
