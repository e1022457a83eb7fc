//! Simplified Chinese.

use super::Strings;

pub(super) const STRINGS: Strings = Strings {
    starting: "正在启动…",
    idle: "就绪",
    loading: "正在加载 {model}…",
    load_failed: "无法加载 {model}",
    generating: "{model}：{rate} tok/s",
    server_on: "服务器地址 {url}",
    server_off: "服务器已关闭",
    server_failed: "服务器出错：{error}",
    copy_url: "拷贝服务器地址",
    models: "已加载的模型",
    unload: "卸载 {model}（{size}）",
    downloads: "下载",
    pause: "暂停 {model}（{done}）",
    resume: "继续 {model}（{done}）",
    open: "打开 macMLX",
    settings: "设置…",
    logs: "日志",
    start_at_login: "登录时启动",
    quit: "退出 macMLX",
    quit_while_answering: "退出 macMLX（正在生成的回答：{count}）",
    quit_question: "正在生成的回答：{count}。退出会中断回答并停止服务器。",
    quit_anyway: "退出",
    cancel: "取消",
    cannot_start: "macMLX 无法启动",
    already_running: "此处已有 macMLX 服务器在运行：{owner}，进程 {pid}，端口 {port}。可以在浏览器中使用它，或用“macmlx stop”停止后重试。",
    owner_app: "应用",
    owner_command_line: "命令行",
    open_in_browser: "在浏览器中打开",
    try_again: "重试",
    #[cfg(target_os = "macos")]
    edit_menu: "编辑",
    #[cfg(target_os = "macos")]
    window_menu: "窗口",
};
