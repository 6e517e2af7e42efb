// Opens the page when the extension's button is pressed.
chrome.action.onClicked.addListener(() => chrome.tabs.create({ url: "index.html" }));
